"""What all routes of the server need: JSON in and out, errors as answers, server-sent events."""

from __future__ import annotations

import json
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from millrace.api.http.access_rules import AccessRules, Refused
from millrace.api.http.http_limits import BYTES, UNSENT_BYTES, LimitedHandler
from millrace.errors import MillraceError, RequestError, UnknownQuery

Parameters = dict[str, str]
Route = tuple[str, Callable[[list[str], Parameters], None]]
"""The method, and what answers: with the rest of the path, and the parameters."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files alone."""


class JsonHandler(LimitedHandler, ABC):
    """Requests of one connection, in a thread of its own; `routes` says by the first part of a path what answers."""

    hint = ""
    """What can be asked for."""

    @abstractmethod
    def routes(self) -> Mapping[str, Route]:
        """By the first part of a path its method and what answers."""

    @property
    @abstractmethod
    def access(self) -> AccessRules:
        """Which requests are answered."""

    def do_GET(self) -> None:
        """Answer it."""
        with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            try:
                self._answer()
            except Refused as refused:
                status, fact, hint = refused.args
                self.send_json(status, {"error": fact, "hint": hint})
            except MillraceError as error:
                status = 404 if isinstance(error, UnknownQuery) else 400
                self.send_json(status, {"error": error.fact, "hint": error.hint})

    def do_POST(self) -> None:
        """Answer it; a body that is not read ends the connection."""
        self._closes = self.close_connection or "Transfer-Encoding" in self.headers
        self.close_connection = self._closes or self.headers.get("Content-Length", "0") != "0"
        self.do_GET()

    def _answer(self) -> None:
        came_in_by, port = self.connection.getsockname()[:2]
        self.access.check(dict(self.headers.items()), str(came_in_by), int(port))
        try:
            url = urlsplit(self.path)
        except ValueError:
            raise RequestError(f'"{self.path}" is not a valid address', hint=f"{self.hint}.") from None
        first, *rest = [unquote(part) for part in url.path.split("/") if part] or [""]
        parameters = _parameters(url.query)
        if first not in self.routes():
            raise self.nothing()
        method, answer = self.routes()[first]
        if self.command != method:
            raise Refused(405, f"{self.command} is not answered at /{first}", f"Use {method}.")
        answer(rest, parameters)

    def nothing(self) -> Refused:
        """The refusal of a path that has nothing."""
        return Refused(404, f'there is nothing at "{self.path}"', f"{self.hint}.")

    def check_token(self, *, changes: bool = False) -> None:
        """Refuse a request that needs the token and does not bring it."""
        self.access.check_token(dict(self.headers.items()), changes=changes)

    def read_json(self) -> Mapping[str, Any]:
        """The JSON object in the body of a request."""
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "a change is an object of JSON", "Send it as Content-Type: application/json.")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BYTES:
            raise Refused(413, f"a body has a length, of at most {BYTES} bytes", "Send less.")
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            found = None
        self.close_connection = self._closes
        if not isinstance(found, dict):
            raise RequestError("the body is no JSON object", hint='Send an object, such as {"sql": "DROP QUERY q"}.')
        return found

    # Answers

    def send_json(self, status: int, data: Any) -> None:
        """Answer with JSON."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_body(status, "application/json", body + b"\n", {"Cache-Control": "no-store"})

    def send_body(self, status: int, kind: str, body: bytes, further: Mapping[str, str]) -> None:
        """Answer with a whole body."""
        self.send_response(status)
        for name, text in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Content-Security-Policy": _POLICY,
            **further,
        }.items():
            self.send_header(name, text)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def begin_events(self) -> None:
        """Begin an answer of server-sent events, which lasts as long as the connection.

        The system keeps few of them for a reader that has fallen behind.
        """
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_event(self, name: str, data: Any) -> None:
        """Send an event, its data as JSON."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.write(b"event: " + name.encode() + b"\ndata: " + body + b"\n\n")

    def write(self, content: bytes) -> None:
        """Send some bytes now."""
        self.wfile.write(content)
        self.wfile.flush()


def _parameters(query: str) -> Parameters:
    """The parameters of a request, each name once."""
    pairs = parse_qsl(query, keep_blank_values=True)
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        twice = next(name for name, _ in pairs if [each for each, _ in pairs].count(name) > 1)
        raise RequestError(f'"{twice}" is given twice', hint="Ask for one key at a time.")
    return parameters
