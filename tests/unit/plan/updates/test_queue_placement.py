"""Where queues are put into the trees of update queries, what they are called, told and said to be."""

from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.kernel.graph.graph import Graph
from millrace.kernel.updates.queue import Queue
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.language import parse_network
from millrace.plan.evolution.evolution import evolve
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.explain.plan_text import explain
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.nodes.relational_nodes import RollUp, Since
from millrace.plan.nodes.update_nodes import AnyQueue, MarkedAggregate, UpdateJoin, UpdateQueue, WindowQueue
from millrace.plan.physical.operator_choice import settings_of
from millrace.plan.physical.stages import Physical, physical
from millrace.plan.updates.queue_configuration import access_at

SECOND = 1_000_000
MINUTE = 60 * SECOND
COLUMNS = "(k STRING, c STRING, v DOUBLE, n INT, ts TIMESTAMP)"


def stream(name: str, more: str = "", order: str = "ORDERED") -> str:
    return f"CREATE STREAM {name} {COLUMNS} TIMESTAMP BY ts {order} {more} FROM csv OPTIONS (path '{name}');"


STREAMS = "".join(
    [
        stream("a", "UPDATE KEY (k)"),
        stream("b", "UPDATE KEY (k)"),
        stream("two", "UPDATE KEY (k, c)"),
        stream("one", "UPDATE KEY ()"),
        stream("told", "UPDATE KEY (k)", order="PUNCTUATED BY ts PER (k)"),
        stream("plain"),
        "CREATE FUNCTION slow(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'math:sqrt';",
    ]
)
WINDOW = "[RANGE 5 MINUTES SLIDE 1 MINUTE]"
COUNTS = f"SELECT k, count(*) AS m FROM a {WINDOW} GROUP BY k"


def network(**queries: str) -> QueryNetwork:
    return parse_network(STREAMS + "".join(f"CREATE QUERY {name} {text};" for name, text in queries.items()))


def plan(**queries: str) -> Physical:
    return physical(network(**queries))


def root(text: str, options: str = "") -> Node:
    chosen = f"WITH ({options}) " if options else ""
    return plan(q=f"{chosen}AS {text}").roots[0][1]


def shape(node: Node) -> str:
    """The kinds of a tree's nodes from above."""
    below = [shape(each) for each in node.children()]
    inside = f"({', '.join(below)})" if below else ""
    return f"{type(node).__name__}{inside}"


def queues(node: Node) -> list[AnyQueue]:
    return [each for each in walk(node) if isinstance(each, AnyQueue)]


def queue(node: Node) -> AnyQueue:
    (found,) = queues(node)
    return found


# Where queues stand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k, v + 1 AS w FROM a WHERE n > 3", "Project(UpdateQueue(Project(Filter(Scan))))"),
        ("SELECT k, c, v, n, ts FROM a", "UpdateQueue(Scan)"),
        ("SELECT k, slow(v) AS w FROM a WHERE n > 3", "Project(UpdateQueue(Project(Filter(Scan))))"),
        ("SELECT k, v FROM a WHERE slow(v) > 1 AND n > 3",
         "Project(Filter(UpdateQueue(Project(Filter(Scan)))))"),
        ("SELECT k, w FROM (SELECT k, v * 2 AS w FROM a) WHERE w > 3",
         "Project(UpdateQueue(Project(Filter(Scan))))"),
        ("SELECT k, w FROM (SELECT k, slow(v) AS w FROM a) WHERE w > 3 AND k > 'b'",
         "Filter(Project(UpdateQueue(Project(Filter(Scan)))))"),
        ("SELECT k, v FROM a UNION b WHERE n > 3",
         "Project(UpdateQueue(Project(Filter(Scan)), Project(Filter(Scan))))"),
        ("SELECT k, slow(v) AS w FROM a UNION b", "Project(UpdateQueue(Project(Scan), Project(Scan)))"),
        ("SELECT k, v FROM a UNION SELECT k, slow(v) AS v FROM b",
         "UpdateQueue(Project(UpdateQueue(Project(Scan))), Project(UpdateQueue(Project(Scan))))"),
        ("SELECT k, v FROM a UNION (SELECT k, v FROM b UNION SELECT k, v FROM a)",
         "UpdateQueue(Project(Scan), Project(Scan), Project(Scan))"),
        ("SELECT k, v FROM a UNION b WHERE n > 3 UNION SELECT k, v FROM a",
         "UpdateQueue(Project(Filter(Scan)), Project(Filter(Scan)), Project(Scan))"),
        ("SELECT x.k, y.v FROM a AS x JOIN b AS y ON x.k = y.k WHERE x.n > 3",
         "Project(UpdateJoin(Project(UpdateQueue(Project(Filter(Scan)))), Project(UpdateQueue(Project(Scan)))))"),
        (COUNTS, "Project(MarkedAggregate(Project(WindowQueue(Project(Scan)))))"),
        (f"SELECT k, sum(slow(v)) AS s FROM a UNION b {WINDOW} WHERE n > 3 GROUP BY k HAVING count(*) > 2",
         "Project(Filter(MarkedAggregate(Project(WindowQueue(Project(Filter(Scan)), Project(Filter(Scan)))))))"),
    ],
)  # fmt: skip
def test_plain_filters_stand_below_the_queue_and_work_above_it(text: str, expected: str) -> None:
    assert shape(root(text)) == expected


OTHERS = COUNTS.replace("FROM a", "FROM b")
ON_KEY = "x JOIN b AS y ON x.k = y.k"
OVER_PAIRS = f"SELECT x.k, count(*) {WINDOW} AS m FROM a AS {ON_KEY} GROUP BY x.k"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"SELECT x.k, x.m FROM ({COUNTS}) AS x JOIN ({OTHERS}) AS y ON x.k = y.k",
         "UpdateQueue(TimedUpdateJoin(Aggregate(Scan), Aggregate(Scan)))"),
        (f"SELECT x.k, slow(x.m) AS w FROM ({COUNTS}) AS x JOIN b AS y ON x.k = y.k WHERE x.m > y.n",
         "UpdateQueue(TimedUpdateJoin(Aggregate(Scan), Scan))"),
        (f"SELECT x.k, sum(slow(x.v)) {WINDOW} AS s FROM a AS {ON_KEY} GROUP BY x.k",
         "MarkedAggregate(WindowQueue(TimedUpdateJoin(Scan, Scan)))"),
        (f"SELECT k, max(m) AS m FROM ({OVER_PAIRS}) [RANGE 1 h SLIDE 1 h] GROUP BY k",
         "MarkedAggregate(MarkedAggregate(WindowQueue(TimedUpdateJoin(Scan, Scan))))"),
        ("SELECT x.k FROM a AS x JOIN b AS y ON x.k = y.k JOIN a AS z ON x.k = z.k AND x.v < z.v",
         "UpdateJoin(UpdateQueue(Scan), UpdateQueue(Scan), UpdateQueue(Scan))"),
        ("SELECT z.k FROM (SELECT x.k FROM a AS x JOIN b AS y ON x.k = y.k) AS z JOIN a AS w ON z.k = w.k",
         "UpdateQueue(TimedUpdateJoin(TimedUpdateJoin(Scan, Scan), Scan))"),
        (f"{COUNTS} UNION {OTHERS}", "UpdateQueue(Aggregate(Scan), Aggregate(Scan))"),
        ("SELECT k, count(*) AS m FROM a [SESSION 1 MINUTE] GROUP BY k", "UpdateQueue(Aggregate(Scan))"),
        (f"SELECT k, max(m) AS n FROM ({COUNTS}) [RANGE 90 s SLIDE 60 s] GROUP BY k WITH (queue = 'auto')",
         "UpdateQueue(Aggregate(Aggregate(Scan)))"),
        (f"SELECT c, count(*) AS m FROM plain {WINDOW} GROUP BY c WITH (queue = 'inplace')",
         "UpdateQueue(Aggregate(Scan))"),
    ],
)  # fmt: skip
def test_what_counts_all_rows_stands_below_the_queue(text: str, expected: str) -> None:
    found = shape(root(text))
    # Filters and projections are not of interest.
    for word in ("Project(", "Filter("):
        while (at := found.find(word)) >= 0:
            depth, end = 1, at + len(word)
            while depth:
                depth += {"(": 1, ")": -1}.get(found[end], 0)
                end += 1
            found = found[:at] + found[at + len(word) : end - 1] + found[end:]
    assert found == expected


def test_the_key_is_that_of_the_stream_under_the_names_below_the_queue() -> None:
    assert queue(root("SELECT c AS x, k AS y, v FROM two")).key == ("k", "c")
    assert queue(root("SELECT v FROM one")).key == ()
    assert queue(root("SELECT u FROM (SELECT k AS u, v AS w FROM a UNION SELECT k, v FROM b)")).key == ("u",)
    assert queue(root("SELECT v FROM plain", "queue = 'append'")).key is None
    assert queue(root("SELECT v FROM a", "queue = 'append'")).key == ("k",)


def test_a_queue_holds_the_columns_that_are_read_above_it_and_its_key() -> None:
    found = queue(root("SELECT k, v * 2 AS w FROM a WHERE n > 3 AND c = 'x'"))
    assert found.schema.names == ["k", "v"]
    assert plan(q="AS SELECT k, v FROM a WHERE n > 3").columns_read("a") == ["k", "v", "n", "ts"]
    counted = plan(q=f"WITH (queue = 'append') AS SELECT count(*) AS m FROM a {WINDOW}")
    assert counted.columns_read("a") == ["k", "ts"]


def test_the_source_of_truth_is_an_input_of_the_queue() -> None:
    assert queue(root("SELECT k, v FROM a UNION b TRUTH b WHERE n > 3")).truth == 1
    assert queue(root(f"SELECT k, count(*) AS m FROM a UNION b TRUTH a {WINDOW} GROUP BY k")).truth == 0
    assert queue(root("SELECT k, v FROM a UNION b")).truth is None
    assert queue(root("SELECT k, v FROM a UNION SELECT k, v FROM a UNION b TRUTH b WHERE n > 3")).truth == 2
    both = "SELECT k, v FROM a UNION b TRUTH b UNION SELECT k, v FROM a UNION b TRUTH a"
    with pytest.raises(QueryError, match="two sources of truth"):
        root(both)
    guard = queues(root("SELECT k, slow(w) AS w FROM (SELECT k, slow(v) AS w FROM a UNION SELECT k, v FROM b)"))[-1]
    assert guard.truth is None and len(guard.inputs) == 2


def test_two_queries_never_share_a_queue_and_share_what_is_below() -> None:
    text = "AS SELECT k, v FROM a WHERE n > 3"
    graph = plan(q=text, r=text).whole()
    kinds = [name.partition("#")[0] for name in graph.nodes]
    assert kinds.count("update_queue") == 2
    assert kinds.count("filter") == 1


def test_promises_of_groups_are_rolled_up_below_a_queue() -> None:
    found = queue(root("SELECT k, v FROM told"))
    assert isinstance(found.inputs[0], RollUp)


def test_a_function_below_a_union_with_windows_is_refused() -> None:
    inner = "SELECT k, slow(v) AS v, ts FROM a UNION SELECT k, v, ts FROM b"
    with pytest.raises(QueryError, match="below a union with windows") as raised:
        root(f"SELECT k, sum(v) AS s FROM ({inner}) {WINDOW} GROUP BY k")
    assert raised.value.hint and raised.value.place is not None


# Windows and joins


def test_a_window_queue_has_the_window_of_its_aggregate_and_the_options_of_its_query() -> None:
    options = "update_window = 'lazy', close = 'own', tick = '2 seconds'"
    found = root(COUNTS, options)
    wanted = ("lazy", "own", 2 * SECOND)
    below = queue(found)
    assert isinstance(below, WindowQueue)
    assert (below.range, below.slide, below.origin) == (5 * MINUTE, MINUTE, 0)
    assert (below.update_window, below.close, below.tick) == wanted
    (aggregate,) = [each for each in walk(found) if isinstance(each, MarkedAggregate)]
    assert aggregate.span == 5 * MINUTE
    assert isinstance(aggregate.aggregate, Aggregate)
    default = queue(root(COUNTS))
    assert isinstance(default, WindowQueue)
    assert (default.update_window, default.close, default.tick) == ("eager", "bound", 1)


def test_two_windows_in_a_chain_are_committed_to_together() -> None:
    lower = "SELECT k, c, avg(v) AS w, window_end FROM a [RANGE 3 MINUTES SLIDE 1 MINUTE] GROUP BY k, c"
    found = root(f"SELECT k, max(w) AS m FROM ({lower}) [RANGE 10 MINUTES SLIDE 5 MINUTES] GROUP BY k")
    below = queue(found)
    assert isinstance(below, WindowQueue)
    # The first result that a window from 0 to 10 holds is that of the minutes from -2 to 1.
    assert (below.range, below.slide, below.origin) == (12 * MINUTE, 5 * MINUTE, 3 * MINUTE)
    assert [each.span for each in walk(found) if isinstance(each, MarkedAggregate)] == [12 * MINUTE, 10 * MINUTE]
    tumbling = queue(root(f"SELECT k, max(m) AS m FROM ({COUNTS.replace('5', '1')}) [RANGE 1 h SLIDE 1 h] GROUP BY k"))
    assert isinstance(tumbling, WindowQueue)
    assert (tumbling.range, tumbling.origin) == (60 * MINUTE, 0)


@pytest.mark.parametrize(
    ("condition", "within", "residual"),
    [
        ("x.k = y.k", (None, None), None),
        ("x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS", (5 * SECOND, 0), None),
        ("x.k = y.k AND y.ts <= x.ts + INTERVAL 5 SECONDS", (5 * SECOND, None), None),
        ("x.k = y.k AND x.c = y.c AND x.v < y.v", (None, None), "((x.c = y.c) AND (x.v < y.v))"),
    ],
)
def test_a_join_is_of_the_latest_rows_within_its_band(
    condition: str, within: tuple[int | None, int | None], residual: str | None
) -> None:
    found = root(f"SELECT x.k, y.v FROM a AS x JOIN b AS y ON {condition}")
    (join,) = [each for each in walk(found) if isinstance(each, UpdateJoin)]
    assert join.keys == (("x.k",), ("y.k",))
    assert join.within == within
    assert (None if join.residual is None else str(join.residual)) == residual
    windows = root("SELECT x.k, y.v FROM a [RANGE 3 s] AS x JOIN b [RANGE 2 s] AS y ON x.k = y.k")
    (join,) = [each for each in walk(windows) if isinstance(each, UpdateJoin)]
    assert join.within == (3 * SECOND, 2 * SECOND)


# Append queues


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k, v FROM a WHERE n > 3", "Project(UpdateQueue(Project(Filter(Scan))))"),
        ("SELECT k, v FROM a UNION b", "Project(UpdateQueue(Project(Scan), Project(Scan)))"),
        ("SELECT k, v FROM a UNION plain",
         "Union(Project(UpdateQueue(Project(Scan))), Project(UpdateQueue(Project(Scan))))"),
        (f"SELECT c, count(*) AS m FROM a {WINDOW} GROUP BY c",
         "Project(Aggregate(Project(UpdateQueue(Project(Scan)))))"),
        ("SELECT x.k FROM a [RANGE 1 s] AS x JOIN plain [RANGE 1 s] AS y ON x.c = y.c",
         "Project(Join(Project(UpdateQueue(Project(Scan))), Project(UpdateQueue(Project(Scan)))))"),
        ("SELECT k, ts FROM a ORDER BY ts", "OrderByTime(Project(UpdateQueue(Project(Scan))))"),
    ],
)  # fmt: skip
def test_an_append_queue_stands_in_front_of_each_stream(text: str, expected: str) -> None:
    assert shape(root(text, "queue = 'append_shed'")) == expected


def test_a_query_over_plain_streams_has_no_queue_unless_it_asks_for_one() -> None:
    assert queues(root("SELECT k, v FROM plain")) == []
    assert shape(root("SELECT k, v FROM plain", "queue = 'append_shed', keep = 0.5")).count("UpdateQueue") == 1


# Names and settings


def names(options: str = "", select: str = "SELECT k, v FROM a", name: str = "q", access: str = "") -> set[str]:
    chosen = f"WITH ({options}) " if options else ""
    return {each for each in plan(**{name: f"{chosen}{access} AS {select}"}).whole().nodes if "queue" in each}


def test_a_queue_is_called_by_what_it_answers_and_not_by_how_it_works() -> None:
    for options in (
        "queue = 'append'",
        "queue = 'linecutting'",
        "baseline = 'naive_memory'",
        "budget = '9 rows'",
    ):
        assert names(options) == names()
    assert names(access="ACCESS EVERY 1 MINUTE") == names()
    assert names(name="other") != names()
    assert names(select="SELECT k, n FROM a") != names()
    assert names("update_window = 'lazy'", COUNTS) != names("", COUNTS)
    assert names("close = 'own'", COUNTS) != names("", COUNTS)
    assert names("close = 'own', tick = '1 s'", COUNTS) != names("close = 'own'", COUNTS)
    united = "SELECT k, v FROM a UNION b"
    assert names(select=f"{united} TRUTH b") != names(select=united)


def test_settings_are_read_off_the_options() -> None:
    assert settings_of({}) == QueueSettings("inplace")
    assert settings_of({"queue": "append_shed", "keep": "0.5", "memory": "naive", "budget": "9 rows"}) == (
        QueueSettings("append_shed", keep=0.5, memory="naive", budget_rows=9)
    )
    assert settings_of({"budget": "250000"}).budget_time == 250_000


def test_a_queue_that_is_there_follows_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[QueueSettings] = []
    graph = Graph()
    network_ = network(q="AS SELECT k, v FROM a")
    physical(network_).shape(graph)
    (node,) = [each for each in graph.nodes.values() if isinstance(each.operator, Queue)]
    monkeypatch.setattr(node.operator, "configure", given.append)
    changed = network(q="WITH (queue = 'linecutting', budget = '9 rows') AS SELECT k, v FROM a")
    physical(changed).shape(graph)
    assert given == [QueueSettings("linecutting", budget_rows=9)]
    assert graph.nodes[node.name] is node


def test_access_conditions_are_over_the_key_as_each_queue_calls_it() -> None:
    def conditions(text: str) -> dict[str, str]:
        (query, tree), *_ = plan(q=text).roots
        places = {"q": tree}
        found = {}
        while places:
            path, node = places.popitem()
            if isinstance(node, AnyQueue):
                found[path] = str(access_at(path, query, tree)[0].when)
            places |= {f"{path}.{position}": each for position, each in enumerate(node.children())}
        return found

    access = "ACCESS EVERY 1 MINUTE WHEN z = 'x' AS"
    assert set(conditions(f"{access} SELECT k AS z, v FROM a").values()) == {"(k = 'x')"}
    joined = conditions(f"{access} SELECT x.u AS z FROM a AS y JOIN (SELECT k AS u, v FROM b) AS x ON y.k = x.u")
    assert set(joined.values()) == {"(k = 'x')"} and len(joined) == 2


# In words


def test_queues_are_explained() -> None:
    text = explain(plan(q="WITH (budget = '9 rows') ACCESS EVERY 1 MINUTE WHEN k = 'x' AS SELECT k, v FROM a"))
    assert "update queue by k, inplace" in text
    assert "an update keeps the place in line of the one it replaces" in text
    assert "above filters, so rows that they drop never enter it" in text
    assert "releases at most 9 rows at a time" in text
    assert "read every 1 MINUTE when (k = 'x')" in text
    options = "update_window = 'lazy', close = 'own', tick = '1 second'"
    windows = explain(plan(q=f"WITH ({options}) AS {COUNTS}"))
    assert "window queue by k, inplace" in windows
    naive = explain(plan(q="WITH (baseline = 'naive_memory') AS SELECT k, v FROM a"))
    assert "inplace, naive memory (baseline)" in naive
    assert "commits to the newest window that is complete, of 5 MINUTES every 1 MINUTE" in windows
    assert "of the windows that the queue has committed to" in windows
    joined = explain(plan(q="AS SELECT x.k, y.v FROM a AS x JOIN b AS y ON x.k = y.k"))
    assert "join of the latest rows of x and y on x.k = y.k" in joined
    three = explain(plan(q="AS SELECT x.k FROM a AS x JOIN b AS y ON x.k = y.k JOIN a AS z ON z.k = x.k"))
    assert "join of the latest rows of x, y and z on x.k = y.k = z.k" in three
    counted = explain(plan(q=f"AS SELECT x.k FROM ({COUNTS}) AS x JOIN b AS y ON x.k = y.k"))
    assert "join of the latest rows of x and y on x.k = y.k, at each time of a row" in counted
    assert "all rows count below it, so that no result depends on the load" in counted
    union = explain(plan(q="AS SELECT k, v FROM a UNION b TRUTH b"))
    assert "one queue for the union" in union and "that of input 2 wins" in union
    dropping = "the key keeps its last answer, or has none"
    assert dropping in explain(plan(q="AS SELECT k, v FROM a WHERE slow(v) > 1"))
    assert dropping in explain(plan(q="AS SELECT k, w FROM (SELECT k, slow(v) AS w FROM a) WHERE w > 3"))
    assert dropping not in explain(plan(q="AS SELECT k, slow(v) AS w FROM a WHERE v > 1"))
    assert dropping not in explain(plan(q="WITH (queue = 'append') AS SELECT k, v FROM a WHERE slow(v) > 1"))
    guarded = explain(plan(q="AS SELECT k, v FROM a UNION SELECT k, slow(v) AS v FROM b"))
    assert "as a guard" in guarded
    shed = explain(plan(q="WITH (queue = 'append_shed', keep = 0.5) AS SELECT k, v FROM plain"))
    assert "append queue, append_shed" in shed and "0.5 of them are kept" in shed


# Evolution

POINTS: StreamProgress = {"a": {"greatest": 100 * SECOND, "bound": 99 * SECOND, "sequence": 7, "outlets": {}}}


def keeps(before: str, after: str) -> tuple[list[str], list[str]]:
    """The kinds of operators that keep state when one query becomes another, and of those that start empty."""
    found = evolve(network(q=before), network(q=after), POINTS)
    assert found is not None
    (told,) = found.queries
    return [each.partition("#")[0] for each in told.keeps], [each.partition("#")[0] for each in told.starts]


def test_a_queue_keeps_its_rows_under_another_policy_and_other_work() -> None:
    assert keeps("AS SELECT k, v FROM a", "WITH (queue = 'linecutting') AS SELECT k, v FROM a")[0] == ["update_queue"]
    assert keeps("AS SELECT k, v FROM a", "AS SELECT k, v + 1 AS w FROM a") == (["update_queue"], [])
    assert keeps("AS SELECT k, v FROM a", "AS SELECT k, n FROM a") == ([], ["update_queue"])


def test_a_window_queue_goes_on_with_its_aggregates_or_not_at_all() -> None:
    other = COUNTS.replace("count(*)", "sum(1)")
    assert keeps(f"AS {COUNTS}", f"AS {COUNTS} HAVING count(*) > 1")[1] == []
    assert sorted(keeps(f"AS {COUNTS}", f"AS {other}")[1]) == ["marked_aggregate", "window_queue"]


def test_a_query_that_joins_later_starts_below_its_queue() -> None:
    query = network(q="AS SELECT k, v FROM a").queries[0].starting_at(50 * SECOND)
    ((_, tree),) = physical(QueryNetwork((query,))).roots
    below = queue(tree)
    assert isinstance(below, UpdateQueue)
    assert [each.time for each in walk(below.inputs[0]) if isinstance(each, Since)] == [50 * SECOND]
