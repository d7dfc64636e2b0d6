"""What every node type answers, for each of them: a new one is found missing here."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.joins.sides import RowsSide, Side
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.explain.labels import label
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation, Window
from millrace.plan.nodes.endpoints import Connector, Stream, Table
from millrace.plan.nodes.join_nodes import AnyJoin, Following, Join, RowsJoin
from millrace.plan.nodes.node import Node, OneInput, SeveralInputs, walk
from millrace.plan.nodes.relational_nodes import (
    Distinct,
    Explode,
    Filter,
    Numbered,
    OrderByColumns,
    OrderByTime,
    Project,
    Rank,
    Released,
    RollUp,
    RowSlack,
    Scan,
    Since,
    Slack,
    Union,
)
from millrace.plan.nodes.table_nodes import TableJoin
from millrace.plan.nodes.update_nodes import (
    AnyQueue,
    AnyUpdateJoin,
    MarkedAggregate,
    OuterUpdateJoin,
    TimedUpdateJoin,
    UpdateJoin,
    UpdateQueue,
    WindowQueue,
)
from millrace.plan.physical.operator_choice import operator_of

MINUTE = 60_000_000
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("ts", TIMESTAMP)])
SCAN = Scan(Stream("s", SCHEMA, TimeContract("external", "ts"), Connector("csv")))
ARRAYS = Scan(
    Stream("t", SCHEMA.append(pa.field("a", pa.list_(pa.int64()))), TimeContract("external", "ts"), Connector("json"))
)
POSITIVE = Call(">", (Column("n"), Literal(0, pa.int64())))
USERS = Table("users", pa.schema([("id", pa.string()), ("n", pa.int64())]), ("id",), Connector("csv"))
SAME = Call("=", (Column("k"), Column("u.id")))
COUNT = Aggregate(SCAN, Window(MINUTE, MINUTE), (("k", Column("k")),), (Aggregation("c", "count"),))


def prefixed(name: str) -> Project:
    """The stream as the input of a join."""
    return Project(SCAN, tuple((f"{name}.{column}", Column(column)) for column in SCHEMA.names))


X, Y = prefixed("x"), prefixed("y")
KEYS = (("x.k",), ("y.k",))
QUEUE = WindowQueue((SCAN,), ("k",), "q", MINUTE, MINUTE)
NODES: tuple[Node, ...] = (
    SCAN,
    Filter(SCAN, POSITIVE),
    X,
    Union((SCAN, Filter(SCAN, POSITIVE))),
    Numbered(Union((SCAN, SCAN))),
    OrderByTime(Union((SCAN, SCAN))),
    OrderByColumns(Union((SCAN, SCAN)), (("k", True),)),
    Distinct(SCAN),
    Explode(ARRAYS, Column("a"), "each", "at", True, ("k", "ts")),
    TableJoin(SCAN, USERS, "left", ((Column("k"), "id"),), (("u.id", "id"), ("u.n", "n")), SAME),
    Rank(SCAN, "rank", ("k",), (("n", True),), "place", 3),
    Since(SCAN, 7),
    Released(SCAN),
    RollUp(SCAN),
    Slack(SCAN, MINUTE),
    RowSlack(SCAN, 5),
    COUNT,
    Join((X, Y), (Side(("x.k",), MINUTE), Side(("y.k",), MINUTE))),
    RowsJoin((X, Y), (RowsSide(("x.k",), rows=3), RowsSide(("y.k",), range=MINUTE))),
    Following((X, Y), KEYS, "recent"),
    UpdateQueue((SCAN,), ("k",), "q"),
    QUEUE,
    MarkedAggregate(COUNT.with_children([QUEUE]), MINUTE),
    TimedUpdateJoin((X, Y), KEYS),
    OuterUpdateJoin((X, Y), KEYS),
    UpdateJoin((UpdateQueue((X,), ("x.k",), "q"), UpdateQueue((Y,), ("y.k",), "q")), KEYS),
)


def kinds(base: type) -> set[type]:
    below = {each for direct in base.__subclasses__() for each in kinds(direct)}
    return below | {base} if not base.__subclasses__() else below


def test_every_node_type_is_here() -> None:
    # An order by columns is an order by time too.
    assert {type(each) for each in NODES} == {*kinds(Node), OrderByTime}
    assert not {Node, OneInput, SeveralInputs, AnyJoin, AnyUpdateJoin, AnyQueue} & kinds(Node)


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_answers_what_every_part_of_a_plan_asks(node: Node) -> None:
    children = node.children()
    assert node.with_children(children) == node.with_operands(node.operands()) == node
    assert node.column_names() == node.schema.names
    read = node.reads(node.column_names())
    assert all(set(names) <= set(child.column_names()) for names, child in zip(read, children, strict=True))
    for position, child in enumerate(node.operands()):
        assert set(node.spread_keys(position) or ()) <= set(child.column_names())
    assert pickle.loads(pickle.dumps(node)) == node


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_has_words_and_an_operator(node: Node) -> None:
    assert label(node)
    if not isinstance(node, Scan):
        assert operator_of(node, {}).label


def test_the_children_of_a_node_come_before_it() -> None:
    assert [type(each).__name__ for each in walk(NODES[-1])][-1] == "UpdateJoin"
    assert next(walk(NODES[-1])) == SCAN


def test_a_prefix_is_a_scan_under_row_wise_nodes_alone() -> None:
    assert Since(Filter(X, POSITIVE), 7).is_prefix
    assert not any(each.is_prefix for each in NODES if not each.is_row_wise)
    assert not Filter(Distinct(SCAN), POSITIVE).is_prefix


@pytest.mark.parametrize(
    ("node", "keeps"),
    [
        (Filter(SCAN, POSITIVE), True),
        (RollUp(SCAN), True),
        (UpdateQueue((SCAN,), None, "q"), True),
        (UpdateQueue((SCAN, SCAN), None, "q"), False),
        (Distinct(SCAN), False),
    ],
)
def test_rows_keep_the_order_of_their_entry_through_prefixes_and_append_queues(node: Node, keeps: bool) -> None:
    assert node.keeps_entry is keeps
