"""What a running network answers to a request, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from millrace.hosts.why.lag import Lag
from millrace.kernel.elements import NO_BOUND, Microseconds

_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})
"""What would break a line or a column of text."""

Did = Literal["added", "dropped", "altered", "runs", "waits", "read"]


@dataclass(frozen=True)
class QueryStart:
    """Where a query starts: it is answered over the rows of its streams whose time is at least `at`.

    >>> started = QueryStart("counts", ("links",), at=1_000_001)
    >>> started.since
    '1970-01-01 00:00:01.000001'
    >>> QueryStart("counts", ("links",)).since is None
    True
    """

    query: str
    streams: tuple[str, ...]
    at: Microseconds = NO_BOUND

    @property
    def since(self) -> str | None:
        """The start as text; None for a query that has all rows of its streams from their beginning."""
        if self.at == NO_BOUND:
            return None
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.at)
        except OverflowError:
            return f"{self.at} us"
        return moment.strftime("%Y-%m-%d %H:%M:%S.%f")


@dataclass(frozen=True)
class Reply:
    """What became of one statement: a query that was added, dropped or altered, or one that runs."""

    did: Did
    started: QueryStart
    options: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "did": self.did,
            "query": self.started.query,
            "since": self.started.since,
            "since_microseconds": None if self.started.since is None else self.started.at,
            "streams": list(self.started.streams),
            "options": dict(self.options),
        }


@dataclass(frozen=True)
class WaitsReply(Reply):
    """What holds results back."""

    lag: Lag | None = None

    @staticmethod
    def of(lag: Lag) -> WaitsReply:
        """The answer to who waits for what."""
        return WaitsReply("waits", QueryStart("", ()), lag=lag)

    def data(self) -> dict[str, Any]:
        """The answer as plain data."""
        assert self.lag is not None, "a run says what holds it back"
        return {"did": self.did, "lag": self.lag.data()}


def reply_text(answer: Mapping[str, Any]) -> str:
    """An answer's data as a line to read.

    >>> reply_text(Reply("dropped", QueryStart("counts", ())).data())
    'counts dropped'
    """
    if answer["did"] == "waits":
        return str(Lag.read(answer["lag"]))
    if answer["did"] == "read":
        return rows_text(answer["columns"], answer["rows"])
    options = ", ".join(f"{key} = {value}" for key, value in answer["options"].items())
    if answer["did"] in ("added", "runs"):
        since = f"since {answer['since']}" if answer["since"] else "since the beginning of its streams"
        line = f"{answer['query']} {answer['did']} {since}, reads {', '.join(answer['streams'])}"
        return f"{line}, {options}" if options else line
    return f"{answer['query']} {answer['did']}" + (f": {options}" if options else "")


def rows_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows of plain values, tab-separated under a head.

    >>> rows_text(["k", "n"], [["a", 1], ["b", None]])
    'k\\tn\\na\\t1\\nb\\tNULL'
    """
    return "\n".join(["\t".join(columns), *("\t".join(map(value_text, row)) for row in rows)])


def value_text(value: Any) -> str:
    """A plain value as text that breaks no line and no column."""
    return "NULL" if value is None else str(value).translate(_ESCAPES)
