"""The answers of a run over HTTP, and its live page: for a browser, a dashboard, a shell.

GET /                 the live page; its routes are in page_routes.py
GET /queries          the queries, their keys and columns
GET /latest/QUERY     the latest answer of every key; of one key with `?column=value` per column of the key
POST /refresh/QUERY   the same, after the polled streams have been asked for rows
GET /changes/QUERY    server-sent events: "change" with the changed rows, "error" if the run failed, "end"
GET /staleness/QUERY  how stale each key is, in microseconds
GET /metrics          the metrics of the run, as text for Prometheus

Rules:
- Answers are JSON, but for the metrics. A missing path or query is 404, a wrong request is 400, with reason and hint.
- Who may ask is in access_rules.py: by default this machine alone, and no page of another site. A GET has no effect.
- A slow subscriber gets the newest answers, never a backlog.
- What a request may take is limited: see `http_limits`.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from threading import Event, Thread, current_thread
from urllib.parse import quote

import pyarrow as pa

from millrace.api.http.access_rules import AccessRules, Refused, url_of
from millrace.api.http.handler import JsonHandler, Parameters, Route
from millrace.api.http.http_limits import LimitedServer
from millrace.api.http.page_routes import PageRoutes
from millrace.api.reader import Reader
from millrace.dashboard.sampler import Sampler
from millrace.errors import MillraceError, RequestError
from millrace.hosts.answers.subscriptions import Subscription
from millrace.hosts.control.replies import plain_rows
from millrace.hosts.telemetry.exposition import CONTENT_TYPE, metrics_text

_POLL = 0.25
"""Seconds between two checks for the end of the server."""
_FAREWELL = 1.0
"""Seconds that a subscriber has to take the last event."""
_QUIET_POLLS = 60
"""Checks without a change after which a comment is sent, which fails if the subscriber has gone."""


class Server:
    """An HTTP server beside a run, until it is closed."""

    def __init__(self, reader: Reader, port: int = 0, access: AccessRules | None = None) -> None:
        self.reader = reader
        self.access = access or AccessRules()
        self.stopping = Event()
        self.followers: set[Thread] = set()
        """The threads that send events."""
        try:
            self._http = _Http((self.access.host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise RequestError(f"port {port} cannot be used: {error}", hint="Choose another; 0 picks one.") from None
        self._http.server = self
        self.sampler = Sampler(reader.observe, lambda: reader.network)
        self._thread = Thread(target=self._http.serve_forever, args=(0.05,), name="millrace-http", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """Its address."""
        return url_of(self.access.shown, self.port)

    @property
    def page(self) -> str:
        """The address of the live page, with the token by which it changes queries; a browser does not send that on."""
        return f"{self.url}/#{self.access.token}"

    def close(self) -> None:
        """Stop answering, after subscribers have got the last event."""
        self.sampler.close()
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

    def __init__(self, address: tuple[str, int], handler: type[JsonHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)


class _Handler(JsonHandler):
    """Requests of one connection, in a thread of its own."""

    server: _Http
    hint = "GET /, /queries, /metrics, /latest/QUERY, /changes/QUERY or /staleness/QUERY, or POST /refresh/QUERY"

    @property
    def access(self) -> AccessRules:
        return self.server.server.access

    @property
    def reader(self) -> Reader:
        """The reader of the run's answers."""
        return self.server.server.reader

    def routes(self) -> Mapping[str, Route]:
        server = self.server.server
        return {
            "queries": ("GET", self._queries),
            "metrics": ("GET", self._metrics),
            "latest": ("GET", self._latest),
            "refresh": ("POST", self._refresh),
            "changes": ("GET", self._changes),
            "staleness": ("GET", self._staleness),
            **PageRoutes(self, self.reader, server.sampler, server.stopping).routes(),
        }

    def _queries(self, path: list[str], parameters: Parameters) -> None:
        if path:
            raise self.nothing()
        self.check_token()
        self.send_json(200, plain_rows(self.reader.queries()))

    def _metrics(self, path: list[str], parameters: Parameters) -> None:
        if path:
            raise self.nothing()
        self.check_token()
        text = metrics_text(self.reader.report()).encode()
        self.send_body(200, CONTENT_TYPE, text, {"Cache-Control": "no-store"})

    def _query(self, path: list[str]) -> str:
        """The query that a path names."""
        if len(path) != 1:
            raise self.nothing()
        self.check_token()
        return path[0]

    def _latest(self, path: list[str], parameters: Parameters) -> None:
        query = self._query(path)
        if parameters.get("refresh") in ("true", "false"):
            raise Refused(405, "a GET refreshes nothing", f"Use POST /refresh/{quote(query)}.")
        self._send_latest(query, parameters, refresh=False)

    def _refresh(self, path: list[str], parameters: Parameters) -> None:
        self._send_latest(self._query(path), parameters, refresh=True)

    def _send_latest(self, query: str, parameters: Parameters, *, refresh: bool) -> None:
        latest = self.reader.of(query, refresh=refresh)
        if not parameters:
            self.send_json(200, plain_rows(latest.table()))
            return
        row = latest.row(parameters)
        if row is None:
            hint = f"The keys that have one are at /latest/{quote(query)}."
            self.send_json(404, {"error": f'query "{query}" has no answer of this key', "hint": hint})
        else:
            self.send_json(200, plain_rows(pa.Table.from_pylist([row], schema=latest.schema))[0])

    def _staleness(self, path: list[str], parameters: Parameters) -> None:
        self.send_json(200, plain_rows(self.reader.staleness(self._query(path))))

    def _changes(self, path: list[str], parameters: Parameters) -> None:
        query = self._query(path)
        with self.reader.changes(query, present=_flag(parameters, "present", otherwise=True)) as subscription:
            self.begin_events()
            self._follow(subscription)
            self._send_failure(subscription)
            self.send_event("end", [])

    def begin_events(self) -> None:
        self.server.server.followers.add(current_thread())
        super().begin_events()

    def finish(self) -> None:
        """Forget a follower that has gone."""
        self.server.server.followers.discard(current_thread())
        super().finish()

    def _follow(self, subscription: Subscription) -> None:
        silent, last = 0, False
        while not subscription.ended and not last:
            # Changes just before the end are sent too.
            last = self.server.server.stopping.is_set()
            rows = subscription.poll(0.0 if last else _POLL)
            silent = silent + 1 if rows is None else 0
            if rows is not None:
                self.send_event("change", plain_rows(rows))
            elif silent % _QUIET_POLLS == 0:
                self.write(b": nothing new\n\n")

    def _send_failure(self, subscription: Subscription) -> None:
        match subscription.failure():
            case None:
                return
            case MillraceError() as error:
                self.send_event("error", {"error": error.fact, "hint": error.hint})
            case error:
                self.send_event("error", {"error": f"{type(error).__name__}: {error}", "hint": ""})


def _flag(parameters: Parameters, name: str, *, otherwise: bool) -> bool:
    """The value of a boolean parameter, which is removed from the parameters."""
    text = parameters.pop(name, str(otherwise)).lower()
    if text not in ("true", "false"):
        raise RequestError(f'"{name}" is true or false, not "{text}"', hint=f"Write {name}=true.")
    return text == "true"
