"""What a run replies to a request, as data for programs and as text for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from millrace.hosts.why.lag import Lag
from millrace.kernel.elements import NO_BOUND, Microseconds

_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})
"""What would break a line or a column of text."""

Did = Literal["added", "dropped", "altered", "refreshed", "runs", "waits", "read"]


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
    """What became of one statement: a query that was added, dropped or altered, one that runs, or a table
    that was read again, by its name in the place of a query's."""

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
        """The reply to SHOW WAITS."""
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


# Rows as plain data: times are text, and so is every value that JSON has no type for


def plain_table(rows: pa.Table) -> dict[str, Any]:
    """A table as plain data: its columns' names, and the rows as lists of values."""
    columns = [plain_values(column) for column in rows.columns]
    return {"columns": rows.column_names, "rows": [list(row) for row in zip(*columns, strict=True)]}


def _time_texts(column: pa.ChunkedArray) -> list[str | None]:
    """Timestamps as text, to the second where they are whole."""
    texts = pc.cast(pc.cast(column, pa.timestamp("us")), pa.string()).to_pylist()
    return [None if text is None else text.removesuffix(".000000") for text in texts]


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values as JSON has them.

    >>> from datetime import datetime
    >>> plain_values(pa.chunked_array([[datetime(2024, 1, 1), None]]))
    ['2024-01-01 00:00:00', None]
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _time_texts(column)
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return column.to_pylist()
    # A number that is none, or has no end, is no JSON.
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    return json.loads(json.dumps(value, default=str))


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """A table as dictionaries of plain values."""
    columns = [plain_values(column) for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
