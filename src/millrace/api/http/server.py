"""The answers of a run over HTTP, on this machine alone: for a browser, a dashboard, a shell.

GET /queries          the queries, their keys and columns
GET /latest/QUERY     the latest answer of every key; of one key with `?column=value` per column of the key
POST /refresh/QUERY   the same, after the polled streams have been asked for rows
GET /changes/QUERY    server-sent events: "change" with the changed rows, "error" if the run failed, "end"
GET /staleness/QUERY  how stale each key is, in microseconds
GET /metrics          the metrics of the run, as text for Prometheus

Rules:
- Answers are JSON, but for the metrics. A missing path or query is 404, a wrong request is 400, with reason and hint.
- The server listens on the loopback address, and refuses other host names and requests of pages from elsewhere: no page
  of another site can read it, or have an effect. A GET has none.
- A slow subscriber gets the newest answers, never a backlog.
- What a request may take is limited: see `http_limits`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Thread, current_thread
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pyarrow as pa

from millrace.api.http.http_limits import LimitedHandler, LimitedServer
from millrace.api.reader import Reader
from millrace.errors import MillraceError, RequestError, UnknownQuery
from millrace.hosts.answers.subscriptions import Subscription
from millrace.hosts.control.replies import plain_rows
from millrace.hosts.telemetry.exposition import CONTENT_TYPE, metrics_text

_ADDRESS = "127.0.0.1"
_NAMES = (_ADDRESS, "localhost")
_POLL = 0.25
"""Seconds between two checks for the end of the server."""
_FAREWELL = 1.0
"""Seconds that a subscriber has to take the last event."""
_QUIET_POLLS = 60
"""Checks without a change after which a comment is sent, which fails if the subscriber has gone."""
_ROUTES = "GET /queries, /metrics, /latest/QUERY, /changes/QUERY or /staleness/QUERY, or POST /refresh/QUERY"

Parameters = dict[str, str]


class Server:
    """An HTTP server beside a run, until it is closed."""

    def __init__(self, reader: Reader, port: int = 0) -> None:
        self.reader = reader
        self.stopping = Event()
        self.followers: set[Thread] = set()
        """The threads that send changes."""
        try:
            self._http = _Http((_ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise RequestError(
                f"port {port} cannot be listened on: {error}", hint="Choose another; 0 picks one."
            ) from None
        self._http.server = self
        self._thread = Thread(target=self._http.serve_forever, args=(0.05,), name="millrace-http", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{_ADDRESS}:{self.port}"

    def close(self) -> None:
        """Stop answering, after subscribers have got the last event."""
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        for follower in list(self.followers):
            follower.join(_FAREWELL)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Http(LimitedServer):
    server: Server


class _Refused(Exception):
    """A status, the fact and the hint."""


class _Handler(LimitedHandler):
    """Requests of one connection, in a thread of its own."""

    server: _Http

    def do_GET(self) -> None:
        """Answer it."""
        with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            try:
                self._answer()
            except _Refused as refused:
                status, fact, hint = refused.args
                self._send(status, {"error": fact, "hint": hint})
            except MillraceError as error:
                self._send(404 if isinstance(error, UnknownQuery) else 400, {"error": error.fact, "hint": error.hint})

    def do_POST(self) -> None:
        """Answer it; nothing that we answer needs a body, so the connection ends if it has one."""
        self.close_connection = self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers
        self.do_GET()

    @property
    def reader(self) -> Reader:
        """The reader of the run's answers."""
        return self.server.server.reader

    def _answer(self) -> None:
        self._refuse_other_sites()
        try:
            url = urlsplit(self.path)
        except ValueError:
            raise RequestError(f'"{self.path}" is no address', hint=f"{_ROUTES}.") from None
        parts = [unquote(part) for part in url.path.split("/") if part]
        parameters = _parameters(url.query)
        routes: Mapping[str, tuple[str, Callable[[str, Parameters], None]]] = {
            "latest": ("GET", self._latest),
            "refresh": ("POST", self._refresh),
            "changes": ("GET", self._changes),
            "staleness": ("GET", self._staleness),
        }
        if parts == ["queries"] and self.command == "GET":
            self._send(200, plain_rows(self.reader.queries()))
            return
        if parts == ["metrics"] and self.command == "GET":
            self._send_body(200, metrics_text(self.reader.report()).encode(), CONTENT_TYPE)
            return
        if len(parts) != 2 or parts[0] not in routes:
            raise _Refused(404, f'there is nothing at "{self.path}"', f"{_ROUTES}.")
        method, answer = routes[parts[0]]
        if self.command != method:
            raise _Refused(405, f"{self.command} is not answered at /{parts[0]}", f"Use {method}.")
        answer(parts[1], parameters)

    def _refuse_other_sites(self) -> None:
        """Refuse who took another name for this server, and pages that another server gave."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host.rpartition(":")[0] not in _NAMES:
            raise RequestError(f'this server is not "{host}"', hint=f"Ask it as {self.server.server.url}.")
        own = [f"http://{name}:{self.server.server.port}" for name in _NAMES]
        if origin not in (None, *own) or self.headers.get("Sec-Fetch-Site") == "cross-site":
            raise _Refused(403, f'a page of "{origin or "another site"}" may not ask this server', "Ask it from here.")

    def _latest(self, query: str, parameters: Parameters) -> None:
        if parameters.get("refresh") in ("true", "false"):
            raise _Refused(405, "a GET refreshes nothing", f"Use POST /refresh/{quote(query)}.")
        self._send_latest(query, parameters, refresh=False)

    def _refresh(self, query: str, parameters: Parameters) -> None:
        self._send_latest(query, parameters, refresh=True)

    def _send_latest(self, query: str, parameters: Parameters, *, refresh: bool) -> None:
        latest = self.reader.of(query, refresh=refresh)
        if not parameters:
            self._send(200, plain_rows(latest.table()))
            return
        row = latest.row(parameters)
        if row is None:
            hint = f"The keys that have one are at /latest/{quote(query)}."
            self._send(404, {"error": f'query "{query}" has no answer of this key', "hint": hint})
        else:
            self._send(200, plain_rows(pa.Table.from_pylist([row], schema=latest.schema))[0])

    def _staleness(self, query: str, parameters: Parameters) -> None:
        self._send(200, plain_rows(self.reader.staleness(query)))

    def _changes(self, query: str, parameters: Parameters) -> None:
        with self.reader.changes(query, present=_flag(parameters, "present", otherwise=True)) as subscription:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            followers = self.server.server.followers
            followers.add(current_thread())
            try:
                self._follow(subscription)
                self._send_failure(subscription)
                self._event("end", [])
            finally:
                followers.discard(current_thread())

    def _follow(self, subscription: Subscription) -> None:
        silent, last = 0, False
        while not subscription.ended and not last:
            # Changes just before the end are sent too.
            last = self.server.server.stopping.is_set()
            rows = subscription.poll(0.0 if last else _POLL)
            silent = silent + 1 if rows is None else 0
            if rows is not None:
                self._event("change", plain_rows(rows))
            elif silent % _QUIET_POLLS == 0:
                self._write(": nothing new\n\n")

    def _send_failure(self, subscription: Subscription) -> None:
        match subscription.failure():
            case None:
                return
            case MillraceError() as error:
                self._event("error", {"error": error.fact, "hint": error.hint})
            case error:
                self._event("error", {"error": f"{type(error).__name__}: {error}", "hint": ""})

    def _event(self, name: str, data: object) -> None:
        self._write(f"event: {name}\ndata: {json.dumps(data)}\n\n")

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()

    def _send(self, status: int, data: Any) -> None:
        self._send_body(status, json.dumps(data).encode() + b"\n", "application/json")

    def _send_body(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _parameters(query: str) -> Parameters:
    """The parameters of a request, each name once."""
    pairs = parse_qsl(query, keep_blank_values=True)
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        twice = next(name for name, _ in pairs if [each for each, _ in pairs].count(name) > 1)
        raise RequestError(f'"{twice}" is given twice', hint="Ask for one key at a time.")
    return parameters


def _flag(parameters: Parameters, name: str, *, otherwise: bool) -> bool:
    """The value of a boolean parameter, which is removed from the parameters."""
    text = parameters.pop(name, str(otherwise)).lower()
    if text not in ("true", "false"):
        raise RequestError(f'"{name}" is true or false, not "{text}"', hint=f"Write {name}=true.")
    return text == "true"
