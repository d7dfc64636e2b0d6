"""Random streams and random queries over them, from a small family that covers the engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork
from tests.reference import evaluate, multiset

Row = dict[str, Any]
SCHEMA = pa.schema([("k", pa.string()), ("j", pa.int32()), ("v", pa.int64()), ("x", pa.float64()),
                    ("ts", pa.timestamp("us", tz="UTC")), ("began", pa.timestamp("us", tz="UTC"))])  # fmt: skip
"""`began` is there for streams that declare it: a second column that progresses."""
SECOND = 1_000_000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

WINDOWS = [(10, 10), (30, 10), (25, 10), (7, 3), (5, 5), (4, 10)]
"""Range and slide in seconds: tumbling, sliding, ragged, and with gaps between windows."""
AGGREGATES = [
    "count(*) AS a",
    "count(v) AS b, sum(v) AS c",
    "min(x) AS d, max(v) AS e, avg(v) AS f",
    "sum(v + j) AS g, min(k) AS h, max(ts) AS i",
]
KEYS = [(), ("k",), ("k", "j"), ("j",)]
FILTERS = ["", "WHERE v > 2", "WHERE k IS NOT NULL AND j < 2", "WHERE x IS NULL OR v % 2 = 0", "WHERE v < -100"]


@dataclass(frozen=True)
class Case:
    """A script, and the rows of every stream in their order of arrival."""

    sql: str
    rows: dict[str, list[Row]]

    @property
    def network(self) -> QueryNetwork:
        return parse_network(self.sql)

    def expected(self) -> list[tuple[Any, ...]]:
        return multiset(evaluate(self.network.queries[0], self.rows))


def declared(stream: str, disorder: int, more: str = "") -> str:
    columns = "k STRING, j INT, v BIGINT, x DOUBLE, ts TIMESTAMP"
    order = f"DISORDER INTERVAL {disorder} SECONDS" if disorder else "ORDERED"
    return f"CREATE STREAM {stream} ({columns}) TIMESTAMP BY ts {order} {more} FROM iterable;\n"


@st.composite
def queries(draw: st.DrawFn, streams: Sequence[str]) -> str:
    """An aggregate, a plain select or an ordered one over some streams."""
    union, where = " UNION ".join(streams), draw(st.sampled_from(FILTERS))
    strategy = draw(st.sampled_from(["dfs", "bfs", "rr", "batch:1", "batch:3"]))
    baseline = draw(st.sampled_from([", baseline = 'in_order'", ""]))
    options = f"WITH (strategy = '{strategy}'{baseline})"
    kind = draw(st.sampled_from(["aggregate", "aggregate", "aggregate", "plain", "ordered"]))
    if kind != "aggregate":
        ordering = "ORDER BY ts" if kind == "ordered" else ""
        return f"CREATE QUERY q AS SELECT k, v + 1 AS w, ts FROM {union} {where} {ordering} {options};"
    length, slide = draw(st.sampled_from(WINDOWS))
    keys, aggregates = draw(st.sampled_from(KEYS)), draw(st.sampled_from(AGGREGATES))
    having = draw(st.sampled_from(["", "HAVING count(*) > 1"]))
    grouping = f"GROUP BY {', '.join(keys)}" if keys else ""
    fixed = f"[RANGE {length} SECONDS SLIDE {slide} SECONDS WA ts]"
    window = draw(st.sampled_from([fixed, fixed, "[SESSION 4 SECONDS]", "[RANGE 6 SECONDS]"]))
    select = f"SELECT {', '.join([*keys, aggregates])} FROM {union} {window}"
    return f"CREATE QUERY q AS {select} {where} {grouping} {having} {options};"


@st.composite
def rows(draw: st.DrawFn, disorder: int, start: int, size: int = 25, breach: int = 0) -> list[Row]:
    """Rows whose times go back by `disorder` seconds at most; with `breach`, some go back further."""
    found, greatest = [], start * SECOND
    for _ in range(draw(st.integers(0, size))):
        step = draw(st.sampled_from([0, 0, 1, SECOND // 2, SECOND, 3 * SECOND, 10 * SECOND]))
        back = draw(st.integers(0, (disorder + breach) * 2)) * SECOND // 2
        greatest += step
        found.append(draw(values(greatest - back)))
    return _within(found, None if breach else disorder * SECOND)


def _within(found: list[Row], disorder: int | None) -> list[Row]:
    """The rows without those that break the bound."""
    kept, greatest = [], None
    for row in found:
        time = (row["ts"] - EPOCH) // dt.timedelta(microseconds=1)
        if disorder is None or greatest is None or time >= greatest - disorder:
            kept.append(row)
            greatest = time if greatest is None else max(greatest, time)
    return kept


@st.composite
def values(draw: st.DrawFn, time: int) -> Row:
    return {
        "k": draw(st.sampled_from([None, "a", "b", "ä", ""])),
        "j": draw(st.sampled_from([None, 0, 1, 2])),
        "v": draw(st.one_of(st.none(), st.integers(-5, 9))),
        "x": draw(st.sampled_from([None, 0.5, -1.25, 1e9])),
        "ts": EPOCH + dt.timedelta(microseconds=time),
    }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One to three streams with disorder and skew, and a query over all of them."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 3)))]
    sql, given = "", {}
    for name in names:
        disorder, start = draw(st.sampled_from([0, 2, 15])), draw(st.sampled_from([-40, -3, 0, 1_700_000_000]))
        start = start if name == "s0" else -3
        sql += declared(name, disorder)
        given[name] = draw(rows(disorder, start))
    return Case(sql + draw(queries(names)), given)


@st.composite
def schedules(draw: st.DrawFn, rows: dict[str, list[Row]], size: int = 6) -> list[tuple[str, list[Row]]]:
    """The rows cut into batches and the streams interleaved, each stream in its order."""
    left, order = {name: list(each) for name, each in rows.items()}, []
    while any(left.values()):
        name = draw(st.sampled_from(sorted(name for name, each in left.items() if each)))
        count = draw(st.integers(1, size))
        order.append((name, left[name][:count]))
        left[name] = left[name][count:]
    return order


def batch(rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)
