"""Which joins are made of several inputs, in which order, and how long each side waits."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Call, Column, Expression, Literal
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.joins.sides import JoinTime, Side
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.explain.join_labels import reason
from millrace.plan.joins.join_order import is_multiway, joined
from millrace.plan.joins.join_steps import JoinCondition, JoinInputs, Timeless, Unbounded
from millrace.plan.joins.time_limits import TimeLimit, TimeLimits
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Scan

NAMES = "abcd"
Keys = tuple[dict[int, str], ...]


def scan(name: str) -> Scan:
    schema = pa.schema([(f"{name}.k", pa.int64()), (f"{name}.g", pa.int64()), (f"{name}.ts", TIMESTAMP)])
    return Scan(Stream(name, schema, TimeContract("latent"), Connector("csv")))


def within(*limits: tuple[int, int, int]) -> tuple[JoinCondition, ...]:
    """Exact limits, as conditions."""
    names = "abcd"
    return tuple(
        JoinCondition(
            _at_most(names[first], names[later], most),
            frozenset((first, later)),
            (TimeLimit(first, later, most),),
            exact=True,
        )
        for first, later, most in limits
    )


def _at_most(first: str, later: str, most: int) -> Expression:
    moved = Call("+", (Column(f"{first}.ts"), Literal(most, pa.duration("us"))))
    return Call("<=", (Column(f"{later}.ts"), moved))


def inputs(count: int, *limits: tuple[int, int, int], keys: Keys = ()) -> JoinInputs:
    times = tuple(Column(f"{name}.ts") for name in NAMES[:count])
    return JoinInputs(tuple(scan(name) for name in NAMES[:count]), times, keys, within(*limits))


def sources(node: Node) -> list[str]:
    return [each.stream.name for each in walk(node) if isinstance(each, Scan)]


def test_limits_follow_from_each_other() -> None:
    limits = TimeLimits(3, [TimeLimit(0, 1, 5), TimeLimit(1, 2, 7), TimeLimit(0, 2, 20), TimeLimit(2, 0, -3)])
    assert limits.of(0, 2) == 12
    assert limits.of(2, 1) == 2
    assert limits.of(1, 0) == 4
    assert limits.of(0, 0) == 0
    assert not limits.contradict()
    assert TimeLimits(2, [TimeLimit(0, 1, -1), TimeLimit(1, 0, 0)]).contradict()
    assert TimeLimits(2, [TimeLimit(0, 1, 4)]).of(1, 0) is None


def test_two_inputs_wait_for_each_other_as_long_as_the_limits_say() -> None:
    found = joined(inputs(2, (0, 1, 5), (1, 0, 3), keys=({0: "a.k", 1: "b.k"},)))
    assert isinstance(found, Join)
    assert found.sides == (Side(("a.k",), 5), Side(("b.k",), 3))
    assert found.residual is None


ALL_KEYS = ({0: "a.k", 1: "b.k", 2: "c.k"},)
CHAIN_KEYS = ({0: "a.k", 1: "b.k"}, {1: "b.g", 2: "c.g"})
LIMITS = ((0, 1, 5), (1, 0, 3), (1, 2, 5), (2, 1, 3))


@pytest.mark.parametrize(("keys", "multiway"), [((), True), (ALL_KEYS, True), (CHAIN_KEYS, False)])
def test_one_join_is_made_of_inputs_with_the_same_keys_or_none(keys: Keys, multiway: bool) -> None:
    given = inputs(3, *LIMITS, keys=keys)
    found = joined(given)
    assert isinstance(found, Join)
    assert is_multiway(given) == multiway
    assert len(found.inputs) == (3 if multiway else 2)
    assert ("multi-way" in (reason(found) or "")) == multiway
    assert ("pipeline" in (reason(found) or "")) != multiway


def test_a_multiway_join_leaves_limits_that_are_tighter_than_its_reach_to_its_residual() -> None:
    found = joined(inputs(3, *LIMITS, keys=ALL_KEYS))
    assert isinstance(found, Join)
    assert [side.ahead for side in found.sides] == [10, 5, 6]
    assert found.residual is not None
    assert set(found.residual.columns()) == {"a.ts", "b.ts", "c.ts"}


def test_a_pipeline_begins_with_keys_then_with_the_shortest_reach_then_with_the_text() -> None:
    keyed = inputs(3, (0, 1, 1), (1, 0, 1), (1, 2, 9), (2, 1, 9), keys=({1: "b.g", 2: "c.g"},))
    assert sources(joined(keyed)) == ["b", "c", "a"]
    shortest = inputs(3, (0, 1, 9), (1, 0, 9), (1, 2, 1), (2, 1, 1), keys=CHAIN_KEYS)
    assert sources(joined(shortest)) == ["b", "c", "a"]
    equal = inputs(3, *LIMITS, keys=CHAIN_KEYS)
    assert sources(joined(equal)) == ["a", "b", "c"]


def test_rows_of_a_pipelines_beginning_wait_until_the_earliest_of_their_parts_allows() -> None:
    found = joined(inputs(3, *LIMITS, keys=CHAIN_KEYS))
    assert isinstance(found, Join)
    left, right = found.sides
    assert (left.ahead, right.ahead) == (5, 6)
    until = next(each for each in walk(found.inputs[0]) if left.until in each.schema.names)
    # c is at most 5 after b; that it is at most 10 after a follows.
    assert until.schema.field(str(left.until)).type == TIMESTAMP
    assert found.residual is not None, "b is at most 3 after c, but c waits 6 for a"


@pytest.mark.parametrize(
    ("time", "own", "below", "aheads"),
    [
        ("max", "max", "max", [5, 6]),
        (2, 1, "max", [5, 6]),
        (1, 0, 1, [5, 3]),
        (0, 0, 0, [10, 6]),
        ("min", "min", "min", [10, 3]),
    ],
)
def test_every_time_that_rows_may_have_has_its_own_reaches(
    time: JoinTime, own: JoinTime, below: JoinTime, aheads: list[int]
) -> None:
    found = joined(inputs(3, *LIMITS, keys=CHAIN_KEYS), time)
    assert isinstance(found, Join)
    inner = next(each for each in walk(found) if isinstance(each, Join))
    assert (found.time, inner.time) == (own, below)
    assert [side.ahead for side in found.sides] == aheads


def test_rows_that_would_be_kept_for_ever_are_named() -> None:
    with pytest.raises(Unbounded) as error:
        joined(inputs(3, (0, 1, 5), (1, 0, 3), (2, 0, 5), keys=CHAIN_KEYS))
    assert (error.value.part, error.value.other) == (0, 2)


def test_an_end_that_a_row_says_itself_may_come_from_any_part_of_a_pipeline() -> None:
    # Rows of b match until a column of a says, and c is close to a: a and c are joined first.
    until = JoinCondition(Literal(True, pa.bool_()), frozenset((0, 1)), untils=((0, 1, Column("a.ts")),), exact=True)
    given = inputs(3, (1, 0, 0), (0, 2, 5), (2, 0, 5))
    found = joined(JoinInputs(given.nodes, given.times, (), (*given.conditions, until)))
    assert sources(found) == ["a", "c", "b"]
    assert isinstance(found, Join)
    assert [side.ahead for side in found.sides] == [None, 5]
    assert found.sides[0].until is not None


def test_a_window_of_an_input_without_a_time_column_needs_a_join_of_its_own() -> None:
    given = inputs(3, *LIMITS, keys=CHAIN_KEYS)
    window = JoinCondition(None, frozenset((0, 2)), (TimeLimit(0, 2, 4),), exact=True)
    with pytest.raises(Timeless) as error:
        joined(JoinInputs(given.nodes, (None, *given.times[1:]), given.keys, (*given.conditions, window)))
    assert error.value.part == 0
