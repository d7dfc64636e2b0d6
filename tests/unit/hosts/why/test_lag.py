"""What holds time back is found in the graph, merged over the graphs of a network, and said in words."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from millrace.errors import RunError
from millrace.hosts.why.lag import Lag, merge, recorded, share
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import NO_BOUND, Batch
from millrace.kernel.graph.executor import Executor
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.time_contract import SEQUENCE
from millrace.language import parse_network
from millrace.plan.physical.stages import Physical, physical
from millrace.testing import table

SECOND = 1_000_000
SCHEMA = {"k": pa.string(), "v": pa.int32(), "ts": pa.timestamp("us", tz="UTC")}
UNION = "CREATE QUERY q AS SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b ORDER BY ts;"
WINDOW = "CREATE QUERY q AS SELECT k, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k;"

DECLARED = "ETS ON DEMAND SKEW INTERVAL 1 SECOND (as late as its rows may be)"

Fed = tuple[int, str, str]
"""A second on the clock, a stream, and rows of it: key and second, `x1 y2`."""


def stream(name: str, promise: str) -> str:
    return f"CREATE STREAM {name} (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts {promise} FROM iterable;\n"


def rows(text: str) -> pa.RecordBatch:
    lines = [f"{each[0]} | 1 | 00:00:{each[1:]:0>2}" for each in text.split()]
    return table("\n".join(["k | v | ts", *lines]), SCHEMA).table.combine_chunks().to_batches()[0]


def executor_of(sql: str, fed: Sequence[Fed], silent: Sequence[str] = ()) -> Executor:
    executor = Executor(physical(parse_network(sql)).whole())
    for clock, name, text in fed:
        executor.push(name, rows(text), clock * SECOND)
        executor.run(StandingClock(clock * SECOND), silent)
        executor.take(clock * SECOND)
    return executor


def lag_of(sql: str, *fed: Fed, now: int = 140, live: bool = True, silent: Sequence[str] = ()) -> Lag:
    executor = executor_of(sql, fed, silent)
    lag = Lag.of(executor, now * SECOND, live=live, silent=silent)
    assert Lag.read(json.loads(json.dumps(lag.data()))) == lag, "it is plain data"
    return lag


def said(lag: Lag) -> str:
    return str(lag).replace("1970-01-01 ", "")


def test_a_partition_that_stalls_is_named_with_what_would_release_its_stream() -> None:
    sql = stream("a", "ORDERED") + stream("b", "ORDERED PARTITIONED BY (k)") + UNION
    lag = lag_of(sql, (100, "a", "x1 x2 x9"), (100, "b", "r1 s1 t1"), (101, "b", "r5 s2 t6"), (130, "b", "r7 t8"))
    assert said(lag).splitlines()[:5] == [
        'q waits for stream "b", partition k = s, whose bound has stood at 00:00:02 for 39 s, last heard 39 s ago',
        "  5 rows are held",
        "  a row of partition k = s from 00:00:05 on releases the first of them",
        f"  Millrace does not advance its bound while it is silent: declare {DECLARED}",
        "a: up to 00:00:09, bound 00:00:09, heard 40 s ago; external time ts, ordered, ETS none",
    ]
    (awaited,) = lag.waits["q"].awaited
    assert (awaited.stream, awaited.until, awaited.moved_at) == ("b", 5 * SECOND, 101 * SECOND)
    assert [part.values for part in lag.streams["b"].slowest] == [("s",), ("r",), ("t",)]


def test_further_partitions_that_are_behind_are_listed() -> None:
    sql = stream("a", "ORDERED") + stream("b", "DISORDER INTERVAL 1 SECOND PARTITIONED BY (k)") + UNION
    text = said(lag_of(sql, (100, "a", "x5"), (100, "b", "s3 r3 t9")))
    assert "partition k = s, whose bound has stood at 00:00:02" in text
    assert "a row of partition k = s from 00:00:04 on" in text, "the held row of b at 3 waits for the bound 3"
    assert "  also behind: partition k = r, at 00:00:02, last heard 40 s ago\n" in text


def test_a_stream_is_silent_when_it_has_not_been_heard_for_a_second() -> None:
    fed, sql = (9, "a", "x9"), stream("a", "ORDERED") + "SELECT k FROM a"
    assert "a: up to 00:00:09, bound 00:00:09, heard 0 ms ago; " in said(lag_of(sql, fed, now=9, silent=["a"]))
    assert "a: up to 00:00:09, bound 00:00:09, heard 1 s ago, silent; " in said(lag_of(sql, fed, now=10, silent=["a"]))


def test_a_silent_stream_that_nobody_speaks_for_is_told_what_to_declare() -> None:
    sql = stream("a", "ORDERED") + stream("b", "ORDERED") + UNION
    text = said(lag_of(sql, (100, "a", "x1 x2"), silent=["a", "b"]))
    assert 'q waits for stream "b", which has sent no row yet\n  2 rows are held' in text
    assert "declare ETS ON DEMAND SKEW INTERVAL 1 SECOND" in text
    assert "b: no row yet, silent; external time ts, ordered, ETS none" in text


def test_with_ets_on_demand_it_says_when_the_next_one_comes() -> None:
    sql = stream("a", "ORDERED") + stream("b", "ORDERED ETS ON DEMAND SKEW INTERVAL 20 SECONDS") + UNION
    lag = lag_of(sql, (1, "b", "y1"), (9, "a", "x9"), now=12, silent=["b"])
    # Silence since second 1 allows a bound of clock - 20 s: 9 is passed at second 29.
    assert "if it stays silent, an ETS at 00:00:29, in 17 s, releases the first of them" in said(lag)
    assert lag.waits["q"].awaited[0].ets_at == 29 * SECOND
    bounded = lag_of(sql, (1, "b", "y1"), (9, "a", "x9"), now=12, live=False)
    assert "an ETS is made only in a run that lasts until it is stopped" in said(bounded)


def test_a_periodic_ets_comes_at_a_beat() -> None:
    sql = stream("a", "ORDERED") + stream("b", "ORDERED ETS EVERY INTERVAL 10 SECONDS SKEW INTERVAL 20 SECONDS") + UNION
    lag = lag_of(sql, (1, "b", "y1"), (9, "a", "x9"), now=12)
    assert lag.waits["q"].awaited[0].ets_at == 30 * SECOND, "the first beat from second 29 on"


def test_skew_alone_cannot_speak_for_a_stream_that_never_spoke() -> None:
    sql = stream("a", "ORDERED") + stream("b", "ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND") + UNION
    assert "an ETS by SKEW needs a first row: declare LULL" in said(lag_of(sql, (9, "a", "x9"), silent=["b"]))


def test_after_an_ets_a_bound_stands_since_it_was_made() -> None:
    sql = stream("a", "ORDERED") + stream("b", "ORDERED ETS ON DEMAND LULL INTERVAL 95 SECONDS") + UNION
    lag = lag_of(sql, (100, "a", "x1 x9"), now=102, silent=["b"])
    assert 'stream "b", whose bound has stood at 00:00:05 for 2 s\n' in said(lag)


@pytest.mark.parametrize(
    ("promise", "fed", "line"),
    [
        (
            "DISORDER INTERVAL 5 SECONDS",
            "x1 x12",
            "a row from 00:00:15 on releases the first of them: it waits by design, for DISORDER 5 SECONDS",
        ),
        ("DISORDER INTERVAL 5 SECONDS", "x1 x9", "a row from 00:00:15 on releases the first of them"),
        ("DISORDER 3 ROWS", "x1 x12", "a row from 00:00:10 on and 3 rows after it release the first of them"),
        ("PUNCTUATED BY v = 2", "x1 x12", "a promise of 00:00:10 or later, by (v = 2), releases the first of them"),
    ],
)
def test_what_releases_depends_on_the_order_contract(promise: str, fed: str, line: str) -> None:
    assert f"\n  {line}\n" in said(lag_of(stream("a", promise) + WINDOW, (100, "a", fed)))


def test_rows_without_promises_leave_a_bound_where_it_stands() -> None:
    sql = stream("a", "PUNCTUATED BY v = 1 AND k = 'p'") + WINDOW
    lag = lag_of(sql, (100, "a", "p1"), (130, "a", "x2"), now=140)
    assert "whose bound has stood at 00:00:01 for 40 s, last heard 10 s ago" in said(lag)


def test_a_group_that_has_not_promised_is_named() -> None:
    sql = stream("a", "PUNCTUATED BY k = 'x' OR ts < TIMESTAMP '1970-01-01 00:00:04' PER (k)") + WINDOW
    text = said(lag_of(sql, (100, "a", "x1 y3 x8"), (120, "a", "y5")))
    assert 'q waits for stream "a", group k = y, whose bound stands at 00:00:03, last heard 20 s ago' in text
    assert "a promise of group k = y of 00:00:10 or later" in text


def test_slack_goes_by_rows_alone() -> None:
    sql = stream("a", "ORDERED") + WINDOW.replace(";", " WITH (slack = '2 seconds');")
    text = said(lag_of(sql, (100, "a", "x1 x9")))
    assert "only later rows release them: no promise does" in text
    assert "ETS ON DEMAND" not in text


def test_a_stream_without_waiting_rows_holds_nothing_back() -> None:
    lag = lag_of(stream("a", "ORDERED") + "CREATE QUERY q AS SELECT k FROM a;", (100, "a", "x1"))
    assert said(lag).splitlines()[0] == "nothing waits"
    assert lag.waits == {}


def test_first_is_the_stream_that_nobody_can_speak_for() -> None:
    spoken = stream("a", "ORDERED ETS ON DEMAND LULL INTERVAL 1 SECOND")
    join = """CREATE QUERY q AS SELECT a.k FROM a LEFT JOIN b ON a.k = b.k
        AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND;"""
    lag = lag_of(spoken + stream("b", "ORDERED") + UNION + join.replace("q AS", "j AS"), (100, "a", "x9"))
    assert [each.stream for each in lag.waits["q"].awaited] == ["b"]
    assert [each.stream for each in lag.waits["j"].awaited] == ["b"], "a row waits for the last that could match it"
    assert "\n  1 row is held\n" in said(lag)


def test_partial_results_are_not_counted_as_rows() -> None:
    lag = lag_of(stream("a", "ORDERED") + WINDOW, (100, "a", "x1 y2 x3 x4"))
    assert "\n  4 rows are held\n" in said(lag), "rows that are only gathered yet"
    executor = executor_of(stream("a", "ORDERED") + WINDOW, [(100, "a", "x1 y2 x3 x4")])
    for node in executor.graph.nodes.values():
        if node.operator is not None:
            node.operator.changes()
    lag = Lag.of(executor, 140 * SECOND, live=True)
    assert "\n  2 partial results are held\n" in said(lag), "one for each key, of four rows"
    assert (lag.waits["q"].held, lag.waits["q"].partials) == (2, 2)
    executor.push("a", rows("z5"), 140 * SECOND)
    executor.run(StandingClock(140 * SECOND), [])
    assert "\n  1 row and 2 partial results are held\n" in said(Lag.of(executor, 140 * SECOND, live=True))


def test_row_numbers_are_no_times() -> None:
    sql = stream("a", "ORDERED") + stream("b", "ORDERED") + UNION
    lag = lag_of(sql, (100, "a", "x1"))
    data = lag.data()
    data["waits"]["q"]["awaited"][0].update(outlet=SEQUENCE, until=12, bound=10)
    numbered = Lag.read(data)
    assert 'stream "b", its row numbers' in str(numbered)
    assert "  2 rows more release the first of them\n" in str(numbered)
    assert numbered.shown()["waits"]["q"]["awaited"][0]["until"] == 12


def test_programs_get_times_as_texts_and_the_verdict() -> None:
    shown = lag_of(stream("a", "ORDERED") + stream("b", "ORDERED") + UNION, (100, "a", "x1")).shown()
    (awaited,) = shown["waits"]["q"]["awaited"]
    assert (awaited["stream"], awaited["until"], awaited["bound"]) == ("b", "1970-01-01 00:00:01", None)
    assert shown["verdict"][0].startswith('q waits for stream "b"')
    assert json.dumps(shown)


# Several graphs, as on Spark

CHAIN = """CREATE QUERY q AS SELECT v, count(*) AS n FROM (
    SELECT a.v AS v, a.ts AS ts FROM a, b
    WHERE a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND
  ) [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY v;"""


def exchanges(plan: Physical, level: int) -> dict[str, tuple[str, str]]:
    return {each.port: (each.stream.name, each.outlet) for each in plan.exchanges() if each.level == level}


def test_shares_of_buckets_add_up_and_the_least_bound_counts() -> None:
    plan = physical(parse_network(stream("a", "ORDERED") + stream("b", "ORDERED") + UNION))
    ports = exchanges(plan, 1)
    shares = []
    for bucket in range(3):
        executor = Executor(plan.high(1))
        edges = {name: Ingress(executor.ingress[port].contract) for port, (name, _) in ports.items()}
        for port, (name, _) in ports.items():
            if name == "a":
                stamped = edges[name].admit(rows(f"x{2 + bucket} x9"), 100 * SECOND).admitted
                executor.edges.push_stamped(port, Batch(stamped.rows.select(["k", "ts", "__time"])))
                executor.edges.observe(port, [edges[name].progress()])
            elif bucket < 2:
                executor.ingress[port].raise_bound((1 - bucket) * SECOND, 90 * SECOND)
                executor.edges.promise(port)
        executor.run(StandingClock(100 * SECOND))
        shares.append(share(executor, 120 * SECOND, live=True, exchanges=ports, edges=edges))
    lag = Lag.read(merge(json.loads(json.dumps(shares))))
    assert lag.waits["q"].held == 6
    (awaited,) = lag.waits["q"].awaited
    assert (awaited.stream, awaited.bound, awaited.until) == ("b", NO_BOUND, 2 * SECOND)
    assert set(lag.streams) == {"a", "b"}


def test_what_waits_behind_a_crossing_is_said_by_its_streams() -> None:
    plan = physical(parse_network(stream("a", "ORDERED") + stream("b", "ORDERED PARTITIONED BY (v)") + CHAIN))
    assert plan.depth == 2
    first, second, ports = Executor(plan.high(1)), Executor(plan.high(2)), exchanges(plan, 1)
    edges = {name: Ingress(first.ingress[port].contract) for port, (name, _) in ports.items()}
    for name, text in (("a", "x1 x30"), ("b", "x1")):
        (port,) = (port for port, (stream, _) in ports.items() if stream == name)
        (exchange,) = (each for each in plan.exchanges() if each.port == port)
        admitted = edges[name].admit(rows(text), 100 * SECOND).admitted.rows
        # What the low level sends on: the columns of its prefix.
        names = [column.removeprefix(f"{name}.") for column in exchange.prefix.schema.names]
        sent = pa.RecordBatch.from_arrays(
            [*(admitted.column(each) for each in names), admitted.column("__time")],
            names=[*exchange.prefix.schema.names, "__time"],
        )
        first.edges.push_stamped(port, Batch(sent))
        first.edges.observe(port, [edges[name].progress()])
    first.run(StandingClock(100 * SECOND))
    (crossing,) = plan.crossings()
    for batch in first.take(100 * SECOND)[crossing.port]:
        second.edges.push_stamped(crossing.port, batch)
    second.ingress[crossing.port].raise_bound(first.promised(crossing.port))
    second.edges.promise(crossing.port)
    second.run(StandingClock(100 * SECOND))
    shares = [
        share(first, 140 * SECOND, live=True, exchanges=ports, edges=edges),
        share(second, 140 * SECOND, live=True, exchanges=exchanges(plan, 2), edges={}),
    ]
    lag = Lag.read(merge(json.loads(json.dumps(shares))))
    assert list(lag.waits) == ["q"]
    assert [each.stream for each in lag.waits["q"].awaited] == ["b"]
    assert 'q waits for stream "b", partition v = 1, whose bound has stood at 00:00:01 for 40 s' in said(lag)


def test_a_record_that_says_nothing_of_waits_is_refused() -> None:
    with pytest.raises(RunError, match="does not say what holds it back"):
        recorded({"batch": 3})
    assert recorded({"lag": merge([])}).waits == {}
