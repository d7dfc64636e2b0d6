"""The options of a generated stream, read into the dataclass that names them, with its types and defaults."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from typing import Any, TypeVar

import pyarrow as pa

from millrace.errors import RequestError, did_you_mean, listed
from millrace.kernel.columns.casts import cast
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.endpoints import Stream

R = TypeVar("R")


def parse_options(stream: Stream, kind: type[R]) -> R:
    """A stream's options as a dataclass of some kind; refuses other names, and text that is no number."""
    defaults: dict[str, Any] = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, object] = {}
    for key, text in stream.connector.options.items():
        if key not in defaults:
            raise RequestError(
                f'stream "{stream.name}" has no {stream.connector.format} option "{key}"',
                hint=f"{did_you_mean(key, defaults)}The options are {listed(defaults)}.",
            )
        given[key] = _as(type(defaults[key]), key, text)
    return kind(**given)


def _as(kind: type, key: str, text: str) -> object:
    try:
        value = kind(text)
        if isinstance(value, float) and not isfinite(value):
            raise ValueError
        return value
    except ValueError as error:
        sort = "whole number" if kind is int else "number"
        raise RequestError(
            f'option "{key}" is "{text}", which is no {sort}', hint=f"Write for example OPTIONS ({key} '10')."
        ) from error


def check_positive(options: object, *keys: str) -> None:
    """Refuse options if one of these options is not above zero."""
    for key in keys:
        value = getattr(options, key)
        if not value > 0:
            raise RequestError(f'option "{key}" does not take "{value}"', hint="It takes a number above zero.")


def check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a word that an option does not take."""
    if value not in choices:
        raise RequestError(
            f'option "{key}" does not take "{value}"', hint=f"{did_you_mean(value, choices)}It takes {listed(choices)}."
        )


def start_micros(text: str) -> int:
    """The option `start` in microseconds."""
    start = cast(pa.scalar(text), TIMESTAMP)
    if not start.is_valid:
        raise RequestError(f'option "start" is "{text}", which is no time', hint="Write it as 2024-01-01 00:00:00.")
    micros: int = start.cast(pa.int64()).as_py()
    return micros
