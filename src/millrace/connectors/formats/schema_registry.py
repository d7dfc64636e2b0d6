"""Schemas by number, from a schema registry that speaks Confluent's HTTP.

A message that names its schema begins with a zero byte and the number of the schema in four bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from millrace.connectors.source import Unreachable
from millrace.errors import RequestError, RunError

_TIMEOUT = 10.0
OPTIONS = ("schema_registry", "registry_username", "registry_password")
"""The options that say where a registry is."""


class UnknownSchema(Exception):
    """A message names no schema, or one that the registry does not have."""


def named_schema(value: bytes) -> tuple[int, bytes]:
    """The number of the schema that a message names, and the rest of it.

    >>> named_schema(b"\\x00\\x00\\x00\\x00\\x07rest")
    (7, b'rest')
    """
    if len(value) < 5 or value[0]:
        raise UnknownSchema("names no schema of a registry")
    return int.from_bytes(value[1:5], "big"), value[5:]


@dataclass(frozen=True)
class SchemaRegistry:
    """A registry; each schema is asked for once."""

    address: str
    owner: str
    user: str | None = None
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str], owner: str) -> SchemaRegistry:
        """The registry that options name."""
        address = options["schema_registry"].rstrip("/")
        if not address.startswith(("http://", "https://")):
            raise RequestError(
                f'option "schema_registry" does not take "{address}"', hint="It takes http://host:8081, or https://."
            )
        return cls(address, owner, options.get("registry_username"), options.get("registry_password", ""))

    def schema(self, number: int) -> str:
        """The text of a schema by its number."""
        return str(self.answer(f"schemas/ids/{number}")["schema"])

    def answer(self, place: str) -> dict[str, Any]:
        """What the registry says of a schema."""
        request = Request(f"{self.address}/{place}", headers={"Accept": "application/json"})
        if self.user is not None:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            request.add_header("Authorization", f"Basic {pair}")
        try:
            with urlopen(request, timeout=_TIMEOUT) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            if error.code == 404:
                what = place.partition("?")[0].removeprefix("schemas/ids/")
                raise UnknownSchema(f"names schema {what}, which the registry does not have") from None
            if error.code in (401, 403):
                raise RunError(
                    f'the schema registry "{self.address}" refuses {self.owner}: {error.reason}',
                    hint="Look at registry_username and registry_password.",
                ) from None
            raise self._unreachable(str(error.reason)) from None
        except (URLError, TimeoutError, ConnectionError) as error:
            raise self._unreachable(str(getattr(error, "reason", error))) from None

    def _unreachable(self, reason: str) -> Unreachable:
        return Unreachable(
            f'the schema registry "{self.address}" does not answer for {self.owner}: {reason}',
            hint="Start it, or correct schema_registry. A run on the same --checkpoint goes on where this one was.",
        )
