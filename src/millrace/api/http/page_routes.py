"""The routes of the live page: its files, what it shows, and the changes that it asks for.

GET /                     the page; GET /static/PATH one of its files
GET /page/events          server-sent events: "picture" with the query graph, "frame" every second, "trouble", "end"
GET /page/curves          the curves of the last hour
GET /page/frame/NUMBER    one frame of the last hour
GET /page/results/QUERY   the last results of a query
GET /page/text            the text of the network, and which part of it each query and clause is
POST /page/proposal       what a change would do: {"sql": "..."}; nothing is changed, the token is needed
POST /page/change         make the change
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

from millrace.api.http.access_rules import Refused
from millrace.api.http.handler import JsonHandler, Parameters, Route
from millrace.api.reader import Reader
from millrace.dashboard.page_files import page_files
from millrace.dashboard.sampler import Sampler
from millrace.errors import RequestError
from millrace.hosts.control.replies import plain_table

_POLL = 0.25
"""Seconds between two checks for the end of the server."""
_QUIET_POLLS = 40
"""Checks without a frame after which a comment is sent, which fails if the page has gone."""


class PageRoutes:
    """Answers the requests of the page on one connection."""

    def __init__(self, handler: JsonHandler, reader: Reader, sampler: Sampler, stopping: Event) -> None:
        self._handler, self._reader, self._sampler, self._stopping = handler, reader, sampler, stopping

    def routes(self) -> Mapping[str, Route]:
        """By the first part of a path its method and what answers."""
        return {"": ("GET", self._index), "static": ("GET", self._file), "page": (self._handler.command, self._page)}

    def _index(self, path: list[str], parameters: Parameters) -> None:
        self._file(["index.html"], parameters)

    def _file(self, path: list[str], parameters: Parameters) -> None:
        """A file of the page: no secret, so the token is not needed."""
        found = page_files().get("/".join(path))
        if found is None:
            raise self._handler.nothing()
        further = {"ETag": found.tag, "Cache-Control": "no-cache"}
        if self._handler.headers.get("If-None-Match") == found.tag:
            self._handler.send_body(304, found.kind, b"", further)
        else:
            self._handler.send_body(200, found.kind, found.content, further)

    def _page(self, path: list[str], parameters: Parameters) -> None:
        routes: Mapping[str, tuple[str, int, Callable[..., None]]] = {
            "events": ("GET", 0, self._events),
            "curves": ("GET", 0, self._curves),
            "frame": ("GET", 1, self._frame),
            "results": ("GET", 1, self._results),
            "text": ("GET", 0, self._text),
            "proposal": ("POST", 0, self._proposal),
            "change": ("POST", 0, self._change),
        }
        first, *rest = path or [""]
        if first not in routes or len(rest) != routes[first][1]:
            raise self._handler.nothing()
        method, _, answer = routes[first]
        if self._handler.command != method:
            raise Refused(405, f"{self._handler.command} is not answered at /page/{first}", f"Use {method}.")
        self._handler.check_token(changes=method == "POST")
        answer(*rest)

    # What it shows

    def _events(self) -> None:
        handler, sampler = self._handler, self._sampler
        handler.begin_events()
        number, drawn, quiet, last, trouble = 0, 0, 0, False, None
        while not last:
            # What came just before the end is sent too.
            last = self._stopping.is_set()
            found = sampler.after(number, 0.0 if last else _POLL)
            if sampler.picture[0] != drawn:
                drawn, picture = sampler.picture
                handler.send_event("picture", picture)
            if sampler.trouble != trouble:
                trouble = sampler.trouble
                handler.send_event("trouble", trouble or "")
            quiet = quiet + 1 if found is None else 0
            if found is not None:
                number, frame = found
                handler.send_event("frame", frame)
            elif quiet % _QUIET_POLLS == 0:
                handler.write(b": nothing new\n\n")
        handler.send_event("end", self._end())

    def _end(self) -> dict[str, Any]:
        error = self._reader.error
        return {"error": None if error is None else str(error)}

    def _curves(self) -> None:
        self._handler.send_json(200, self._sampler.history.curves())

    def _frame(self, number: str) -> None:
        found = self._sampler.history.frame(int(number)) if number.isdecimal() else None
        if found is None:
            raise self._handler.nothing()
        self._handler.send_json(200, found)

    def _results(self, query: str) -> None:
        rows = self._reader.last_results(query)
        self._handler.send_json(200, None if rows is None else plain_table(rows))

    def _text(self) -> None:
        self._handler.send_json(200, self._reader.text())

    # Changes

    def _proposal(self) -> None:
        self._handler.send_json(200, self._reader.proposal(self._sql()))

    def _change(self) -> None:
        replies = self._reader.ask(self._sql())
        self._handler.send_json(200, [each.data() for each in replies])

    def _sql(self) -> str:
        text = self._handler.read_json().get("sql")
        if not isinstance(text, str) or not text.strip():
            raise RequestError("the request holds no statement", hint='Send {"sql": "ADD QUERY name AS SELECT ..."}.')
        return text
