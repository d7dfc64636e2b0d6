"""Random joins as plans: limits, times and trees that no text asks for, but that operators must stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.kernel.joins.sides import RowsSide, Side
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation, InstantWindow, PairWindow
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Filter, OrderByTime, Project, Scan, Union
from tests.property.cases import SCHEMA, SECOND, Row
from tests.property.joins import METHODS, ending

KEYS = [(), ("k",), ("k",), ("k", "j")]
STREAMS = ("s0", "s1", "s2")


@dataclass(frozen=True)
class PlanCase:
    """A network of one query, and the rows of every stream in their order of arrival."""

    network: QueryNetwork
    rows: dict[str, list[Row]]


def read(stream: Stream, name: str) -> Project:
    """A stream with its columns under names of their own."""
    return Project(Scan(stream), tuple((f"{name}.{each}", Column(each)) for each in SCHEMA.names))


@st.composite
def inputs(draw: st.DrawFn, streams: list[Stream], name: str) -> Node:
    """A stream, some rows of it, or several."""
    chosen = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=2))
    whole: Node = Union(tuple(read(each, name) for each in chosen)) if len(chosen) > 1 else read(chosen[0], name)
    return Filter(whole, Call("is_not_null", (Column(f"{name}.v"),))) if draw(st.booleans()) else whole


@st.composite
def sides(draw: st.DrawFn, name: str, keys: tuple[str, ...], *, outer: bool) -> Side:
    ahead = draw(st.sampled_from([None, -2, 0, 1, 4, 9]))
    until = f"{name}.began" if ahead is None or draw(st.integers(0, 3)) == 0 else None
    return Side(
        tuple(f"{name}.{key}" for key in keys),
        None if ahead is None else ahead * SECOND,
        until,
        outer and draw(st.booleans()),
    )


def residual(draw: st.DrawFn) -> Expression | None:
    condition = Call("<", (Column("x.v"), Column("y.v")))
    return draw(st.sampled_from([None, condition, Call("or", (condition, Call("is_null", (Column("x.j"),))))]))


@st.composite
def joins(draw: st.DrawFn, streams: list[Stream]) -> Node:
    """Two or three inputs by time, with an aggregate by the time that was chosen, or by both."""
    count = draw(st.sampled_from([2, 2, 3]))
    names, keys = "xyz"[:count], draw(st.sampled_from(KEYS))
    outer, joint = count == 2 and draw(st.booleans()), count == 2 and draw(st.booleans())
    time = draw(st.sampled_from(["max", "min", *range(count)]))
    node = Join(
        tuple(draw(inputs(streams, name)) for name in names),
        tuple(draw(sides(name, keys, outer=outer)) for name in names),
        residual(draw),
        time,
        joint,
    )
    if draw(st.booleans()):
        return node
    counted = (Aggregation("n", "count"), Aggregation("total", "sum", (Column("y.v"),)))
    if joint and not outer:
        both = tuple((name, Column(name)) for name in ("x.ts", "y.ts"))
        return Aggregate(node, PairWindow("x.ts", "y.ts"), both, counted)
    return Aggregate(node, InstantWindow(), (("x.k", Column("x.k")),), counted)


@st.composite
def ordered(draw: st.DrawFn, streams: list[Stream]) -> Node:
    """A join whose rows are sorted by the later time, or the only one."""
    names, keys = "xyz"[: draw(st.sampled_from([2, 3]))], draw(st.sampled_from(KEYS))
    return OrderByTime(
        Join(
            tuple(draw(inputs(streams, name)) for name in names),
            tuple(draw(sides(name, keys, outer=len(names) == 2)) for name in names),
            residual(draw),
        )
    )


@st.composite
def by_rows(draw: st.DrawFn, streams: list[Stream]) -> Node:
    keys = draw(st.sampled_from(KEYS))

    def side(name: str) -> RowsSide:
        rows = draw(st.sampled_from([None, 1, 2, 5]))
        length = draw(st.sampled_from([None, 0, 3])) if rows is None else None
        partition = draw(st.sampled_from([(), ("k",), ("j",), ("k", "j")])) if rows is not None else ()
        return RowsSide(
            tuple(f"{name}.{key}" for key in keys),
            rows,
            None if length is None else length * SECOND,
            tuple(f"{name}.{key}" for key in partition),
        )

    return RowsJoin((draw(inputs(streams, "x")), draw(inputs(streams, "y"))), (side("x"), side("y")), residual(draw))


@st.composite
def following(draw: st.DrawFn, streams: list[Stream]) -> Node:
    """A sequence of two, or of three."""
    keys, mode = draw(st.sampled_from(KEYS)), draw(st.sampled_from(["recent", "chronicle"]))
    node: Node = draw(inputs(streams, "x"))
    for before, name in zip("xy", "yz"[: draw(st.sampled_from([1, 1, 2]))], strict=False):
        within = draw(st.sampled_from([None, 0, 2, 30]))
        node = Following(
            (draw(inputs(streams, name)), node),
            (tuple(f"{name}.{key}" for key in keys), tuple(f"{before}.{key}" for key in keys)),
            mode,
            None if within is None else within * SECOND,
            strict=mode == "recent" and draw(st.booleans()),
            outer=draw(st.booleans()),
        )
    return node


@st.composite
def in_turn(draw: st.DrawFn, streams: list[Stream]) -> Node:
    """One join after another, each by keys of its own, the first kept by a column that the rows bring."""
    first = Join(
        (draw(inputs(streams, "x")), draw(inputs(streams, "y"))),
        (draw(sides("x", ("k",), outer=True)), draw(sides("y", ("k",), outer=True))),
    )
    key = draw(st.sampled_from(["x.k", "y.j", "x.j"]))
    limits = Side((key,), draw(st.sampled_from([0, 3 * SECOND])), outer=draw(st.booleans()))
    return Join((first, draw(inputs(streams, "z"))), (limits, draw(sides("z", (key[2:],), outer=True))))


KINDS: dict[str, Any] = {each.__name__: each for each in (joins, ordered, by_rows, following, in_turn)}


@st.composite
def plan_cases(draw: st.DrawFn, kind: str) -> PlanCase:
    """Up to three streams with disorder, and a plan of a kind over them."""
    disorders = {name: draw(st.sampled_from([0, 2, 15])) for name in STREAMS}
    streams = [
        Stream(name, SCHEMA, TimeContract("external", "ts", disorder=disorder * SECOND), Connector("iterable"))
        for name, disorder in disorders.items()
    ]
    root = draw(KINDS[kind](streams))
    options = {"join": draw(st.sampled_from(METHODS))} if kind == "ordered" else {}
    network = QueryNetwork((Query("q", root, Sink("q", Connector("memory")), options),))
    rows = {each.name: draw(ending(disorders[each.name])) for each in network.streams()}
    return PlanCase(network, rows)
