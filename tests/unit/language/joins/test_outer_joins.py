"""Outer joins, and joins of several kinds from left to right."""

from __future__ import annotations

import pytest

from millrace.kernel.columns.expressions import Call, Column
from millrace.plan.nodes.join_nodes import Following, Join
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.relational_nodes import Filter, Project
from tests.unit.language.joins.test_join_binder import join_of
from tests.unit.language.scripts import refusal, root

BAND = "b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"


@pytest.mark.parametrize(
    ("kind", "outer"),
    [
        ("LEFT", [True, False]),
        ("LEFT OUTER", [True, False]),
        ("RIGHT", [False, True]),
        ("FULL OUTER", [True, True]),
        ("INNER", [False, False]),
        ("", [False, False]),
    ],
)
def test_the_kind_of_a_join_says_whose_rows_are_kept(kind: str, outer: list[bool]) -> None:
    join = join_of(f"SELECT a.len FROM control a {kind} JOIN main1 b ON a.len = b.len AND {BAND}")
    assert [side.outer for side in join.sides] == outer
    assert [side.ahead for side in join.sides] == [5_000_000, 0]


def lines(text: str) -> tuple[list[str], str, list[str]]:
    """The conditions below a join, its residual, and the conditions above it."""
    join = join_of(text)
    below = [str(each.predicate) for each in walk(join) if isinstance(each, Filter)]
    every = [str(each.predicate) for each in walk(root(text)) if isinstance(each, Filter)]
    return below, str(join.residual), every[len(below) :]


ON = f"a.len = b.len AND {BAND} AND a.len > 3 AND b.len > 4"
WHERE = "a.len > 5 AND b.len > 6"


def test_conditions_of_a_left_join_stand_where_they_keep_their_meaning() -> None:
    below, residual, above = lines(f"SELECT a.len FROM control a LEFT JOIN main1 b ON {ON} WHERE {WHERE}")
    assert below == ["(len > 5)", "(len > 4)"]
    assert residual == "(a.len > 3)"
    assert above == ["(b.len > 6)"]


def test_conditions_of_a_right_join_stand_where_they_keep_their_meaning() -> None:
    below, residual, above = lines(f"SELECT a.len FROM control a RIGHT JOIN main1 b ON {ON} WHERE {WHERE}")
    assert below == ["(len > 6)"]
    assert residual == "((a.len > 3) AND (b.len > 4))"
    assert above == ["(a.len > 5)"]


def test_conditions_of_a_full_join_stand_where_they_keep_their_meaning() -> None:
    below, residual, above = lines(f"SELECT a.len FROM control a FULL JOIN main1 b ON {ON} WHERE {WHERE}")
    assert below == []
    assert residual == "((a.len > 3) AND (b.len > 4))"
    assert above == ["((a.len > 5) AND (b.len > 6))"]


def test_joins_of_several_kinds_are_made_from_left_to_right() -> None:
    text = (
        f"SELECT a.len FROM control a JOIN main1 b ON {BAND}"
        " LEFT JOIN other c ON c.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE AND c.len = a.len WHERE a.srcIP = b.srcIP"
    )
    first, last = [each for each in walk(root(text)) if isinstance(each, Join)]
    assert first.sides[0].keys == ("a.srcIP",), "a condition of WHERE is a key of the inner join below"
    assert [side.outer for side in last.sides] == [True, False]
    left = last.inputs[0]
    assert isinstance(left, Project)
    until = last.sides[0].until
    assert until is not None
    # Rows of a may not say it: those of b do already.
    found = dict(left.columns)[until]
    assert isinstance(found, Call)
    assert found.arguments[0] == Column("b.ts")


def test_an_as_of_join_above_a_join_goes_by_the_time_that_it_compares() -> None:
    text = f"SELECT a.len FROM control a JOIN main1 b ON {BAND} ASOF JOIN other c ON c.ts <= a.ts AND c.len = b.len"
    (following,) = [each for each in walk(root(text)) if isinstance(each, Following)]
    assert following.keys == (("b.len",), ("c.len",))
    assert join_of(text).time == 0


@pytest.mark.parametrize(
    ("text", "fact", "hint"),
    [
        ("SELECT a.len FROM control a LEFT JOIN main1 b ON a.len = b.len", 'rows of "a" for ever', "add to ON"),
        ("SELECT a.len FROM control a LEFT JOIN main1 b ON a.len = b.len WHERE a.ts = b.ts", "for ever", "add to ON"),
        (
            f"SELECT a.len FROM control a JOIN main1 b ON {BAND} LEFT JOIN other c ON c.len = a.len",
            "for ever",
            "c.ts <=",
        ),
        (f"SELECT a.len FROM control a LEFT JOIN main1 b ON {BAND} AND a.ts > b.ts", "no rows can satisfy", "signs"),
    ],
)
def test_an_outer_join_that_keeps_rows_for_ever_is_refused(text: str, fact: str, hint: str) -> None:
    error = refusal(text)
    assert fact in error.fact
    assert error.hint and hint in error.hint
    assert error.place is not None
