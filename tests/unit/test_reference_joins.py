"""The reference that joins are held to, itself held to small examples worked out by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Call, Column
from millrace.kernel.joins.sides import JoinTime, RowsSide, Side
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.join_nodes import AnyJoin, Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Project, Scan, Union
from tests.reference_joins import joined
from tests.reference_values import TIME, timestamp

TIMESTAMP = pa.timestamp("us", tz="UTC")
S, T = "d2 c4 b6 a8 a12", "a1 a5 b9 c10"
"""The streams of 003 Fig. 1: keys and times."""


def read(name: str) -> Project:
    """A stream of keys and times, its columns under names of their own."""
    schema = pa.schema([("k", pa.string()), ("ts", TIMESTAMP), ("ends", TIMESTAMP), ("id", pa.int64())])
    stream = Stream(name, schema, TimeContract("external", "ts", disorder=100), Connector("iterable"))
    return Project(Scan(stream), tuple((f"{name}.{each}", Column(each)) for each in schema.names))


BOTH = (read("s"), read("t"))
KEYS = (("s.k",), ("t.k",))


def pairs(node: AnyJoin, s: str, t: str) -> str:
    """The pairs as words: of which row with which, a dash for none."""
    found = joined(node, [rows("s", s), rows("t", t)])
    return " ".join(sorted("/".join(_word(row, name) for name in "st") for row in found))


def rows(name: str, text: str) -> list[dict[str, Any]]:
    """Rows like `a12`, key and time, or `a12-15` with an end; `?` is no key; `a12.1` tells it from others like it."""
    found = []
    for word in text.split():
        time, _, number = word[1:].partition(".")
        start, _, end = time.partition("-")
        row = {
            "k": None if word[0] == "?" else word[0],
            "ts": timestamp(int(start)),
            "ends": timestamp(int(end)) if end else None,
            "id": int(number) if number else None,
        }
        found.append({f"{name}.{column}": value for column, value in row.items()} | {TIME: int(start)})
    return found


def _word(row: dict[str, Any], name: str) -> str:
    if row[f"{name}.ts"] is None:
        return "-"
    number = "" if row[f"{name}.id"] is None else f".{row[f'{name}.id']}"
    return f"{row[f'{name}.k'] or '?'}{row[f'{name}.ts'].microsecond}{number}"


def banded(ahead: int, *, outer: bool = False, time: JoinTime = "max") -> Join:
    return Join(BOTH, (Side(("s.k",), ahead, outer=outer), Side(("t.k",), ahead, outer=outer)), time=time)


def test_a_window_holds_both_of_its_ends() -> None:
    assert pairs(banded(6), S, T) == "a8/a5 b6/b9 c4/c10"
    assert pairs(banded(7), S, T) == "a12/a5 a8/a1 a8/a5 b6/b9 c4/c10"


def test_rows_without_a_partner_are_given_once_and_no_key_equals_no_key() -> None:
    assert pairs(banded(3, outer=True), "a8 a12 ?9", "a5 a6 ?9") == "-/?9 ?9/- a12/- a8/a5 a8/a6"


def test_a_row_matches_until_it_ends_and_never_without_an_end() -> None:
    node = Join(BOTH, (Side(("s.k",), until="s.ends"), Side(("t.k",), ahead=0)))
    assert pairs(node, "a1-4 a2 a3-3", "a3 a4 a5") == "a1/a3 a1/a4 a3/a3"


def test_what_else_is_asked_decides_among_those_that_match() -> None:
    later = Call(">", (Column("t.ts"), Column("s.ts")))
    assert pairs(Join(BOTH, (Side((), 9), Side((), 9)), later), "a1 b5", "c1 d6") == "a1/d6 b5/d6"


@pytest.mark.parametrize(("choice", "expected"), [(0, 8), (1, 5), ("max", 8), ("min", 5)])
def test_the_time_of_a_pair_is_the_one_that_was_chosen(choice: JoinTime, expected: int) -> None:
    (row,) = joined(banded(6, time=choice), [rows("s", "a8"), rows("t", "a5")])
    assert row[TIME] == expected


def test_the_last_row_before_another_is_the_one_that_entered_last_or_is_greatest() -> None:
    recent = Following(BOTH, KEYS, "recent", outer=True)
    assert pairs(recent, "a5 a2 b9", "a3.2 a3.1 a6.0") == "a2/- a5/a3.1 b9/-"
    of_a_union: Node = Union((read("t"), read("t")))
    assert pairs(Following((BOTH[0], of_a_union), KEYS, "recent"), "a5", "a3.2 a3.1") == "a5/a3.2"
    assert pairs(Following(BOTH, KEYS, "recent", within=2, strict=True), "a5 a6", "a5.0 a3.1") == "a5/a3.1 a6/a5.0"


def test_a_chronicle_uses_each_row_once_from_the_earliest_on() -> None:
    chronicle = Following(BOTH, KEYS, "chronicle", outer=True)
    assert pairs(chronicle, "a5.0 a5.1 a6 a1", "a5.2 a2.1 ?0") == "a1/- a5.0/a2.1 a5.1/a5.2 a6/-"
    assert pairs(Following(BOTH, KEYS, "chronicle", within=2), "a5 a6", "a2 a3 a4") == "a5/a3 a6/a4"


def test_a_window_by_rows_holds_the_last_ones_at_the_time_of_the_other_row() -> None:
    node = RowsJoin(BOTH, (RowsSide((), rows=2), RowsSide(())))
    assert pairs(node, "a1 b2 c3", "x2 y3 z0") == "a1/x2 b2/x2 b2/y3 c3/y3"
    partitioned = RowsJoin(BOTH, (RowsSide((), rows=1, partition=("s.k",)), RowsSide((), range=1)))
    assert pairs(partitioned, "a1 b2 a3", "x3 y2") == "a1/y2 a3/x3 a3/y2 b2/x3 b2/y2"
