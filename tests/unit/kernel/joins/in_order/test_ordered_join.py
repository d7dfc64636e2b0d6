"""In-order joins (003): Sync-Filter, Filter-Order and the adaptive join."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

from millrace.hosts.virtual.clock import Costs, VirtualClock
from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Element, Punctuation
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.joins.any_order.join import Join
from millrace.kernel.joins.in_order.join_monitor import JoinMonitor
from millrace.kernel.joins.in_order.ordered_join import Method, OrderedJoin
from millrace.kernel.joins.sides import Side
from millrace.kernel.metrics import JoinMetrics
from millrace.testing import Bench
from tests.unit.kernel.check_by_input import (
    Driven,
    check_by_input,
    interleaved,
    outputs,
    random_scripts,
    restarted,
    row_by_row,
    schemas,
)
from tests.unit.kernel.check_operator import rows_of
from tests.unit.kernel.graphs import ORDERED, TIMESTAMP

METHODS: tuple[Method, ...] = get_args(Method)
SECOND = 1_000_000


def sides(ports: int = 2, *, keyed: bool = True) -> list[Side]:
    keys = [(f"k{port}",) if keyed else () for port in range(ports)]
    return [Side(key, ahead) for key, ahead in zip(keys, (20, 10, 15), strict=False)]


def ordered(method: Method, ports: int = 2, *, keyed: bool = True, alpha: float = 0.3) -> OrderedJoin:
    return OrderedJoin(schemas(ports), sides(ports, keyed=keyed), method=method, alpha=alpha)


class Wavering(OrderedJoin):
    """An adaptive join that changes its mind whenever it may."""

    def __init__(self, ports: int = 2) -> None:
        super().__init__(schemas(ports), sides(ports), method="adaptive", alpha=0.3)
        self.turns = 0

    def _adapt(self, monitor: JoinMonitor) -> None:
        self.turns += 1
        before, self.alpha = self.alpha, 3.0 if self.mode == "filter_order" else 0.0
        super()._adapt(_Working())
        self.alpha = before


class _Working(JoinMonitor):
    """A monitor that always knows of some work."""

    work = 1.0

    def __init__(self) -> None:
        super().__init__(sides())

    def would_make(self, rows: int) -> float:
        return 0.0


def wavering(ports: int = 2) -> Wavering:
    join = Wavering(ports)
    assert join.monitor is not None
    join.monitor._length = 1
    return join


class Crowded(OrderedJoin):
    """An adaptive join with work enough to join rows as they come, but room for one result."""

    few = 1
    _may_hold = 1  # type: ignore[assignment]

    def _adapt(self, monitor: JoinMonitor) -> None:
        super()._adapt(_Working())


def crowded(ports: int = 2) -> OrderedJoin:
    return Crowded(schemas(ports), sides(ports), method="adaptive", alpha=0.3)


MAKERS: dict[str, Callable[[int], OrderedJoin]] = {
    **{method: lambda ports, method=method: ordered(method, ports) for method in METHODS},  # type: ignore[misc]
    "wavering": wavering,
    "crowded": crowded,
}


@pytest.mark.slow
@pytest.mark.parametrize("ports", [2, 3])
@pytest.mark.parametrize("name", MAKERS)
def test_an_ordered_join_keeps_the_contract(name: str, ports: int) -> None:
    check_by_input(lambda: MAKERS[name](ports), ports=ports, seeds=4)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "ports"), [(0, 2), (1, 3), (2, 2), (3, 3)])
@pytest.mark.parametrize("name", MAKERS)
def test_every_method_gives_what_the_order_agnostic_join_gives_without_an_inversion(
    name: str, seed: int, ports: int
) -> None:
    script = random_scripts(seed, ports)
    expected = rows_of(outputs(lambda: Join(schemas(ports), sides(ports)), script))
    variants = [
        outputs(lambda: MAKERS[name](ports), script),
        outputs(lambda: MAKERS[name](ports), row_by_row(script), limit=1),
        outputs(lambda: MAKERS[name](ports), interleaved(script, seed), limit=3),
        restarted(lambda: MAKERS[name](ports), interleaved(script, seed + 1), seed, 0.5),
    ]
    for found in variants:
        assert rows_of(found) == expected
        assert times_of(found) == sorted(times_of(found))


def times_of(elements: Sequence[Element]) -> list[int]:
    return [time for each in elements if isinstance(each, Batch) for time in each.times.tolist()]


@pytest.mark.parametrize("make", [wavering, crowded])
def test_the_wavering_join_is_in_every_mode_and_drains_in_between(make: Callable[[], OrderedJoin]) -> None:
    seen = []
    for seed in range(6):
        driven = Driven(make)
        for port, element in random_scripts(seed).steps:
            driven.step(port, element)
            assert isinstance(driven.operator, OrderedJoin)
            seen.append(driven.operator.mode)
    assert set(seen) == {"sync_filter", "filter_order", "draining"}


# The papers' own tuples (003 Figs. 1, 3 and 4)

S = [("d", 2, 2), ("c", 4, 4), ("b", 6, 6), ("a", 8, 11), ("a", 12, 12)]
T = [("a", 1, 1), ("a", 5, 5), ("b", 9, 9), ("c", 10, 10)]
"""Letters with their time and their arrival, in seconds."""
WINDOW = 6 * SECOND
TP = SECOND // 10


class Trace:
    """S and T joined by letter on a clock that moves by the work done; every row that matches makes one pair."""

    def __init__(self, join: OrderedJoin, costs: Costs) -> None:
        self.join = join
        graph = Graph()
        sources = [graph.source(name, ORDERED) for name in ("S", "T")]
        graph.sink("q", graph.operator("join", join, sources))
        self.executor = Executor(graph, rows_per_step=1)
        self.clock = VirtualClock(costs)
        self.released: list[tuple[str, float]] = []
        """What came out, by its letters and times, and when."""

    def run(self) -> Trace:
        arriving = sorted([(arrival, "S", letter, time) for letter, time, arrival in S] +
                          [(arrival, "T", letter, time) for letter, time, arrival in T])  # fmt: skip
        for arrival, stream, letter, time in arriving:
            self.clock.time = max(self.clock.time, arrival * SECOND)
            self.executor.push(stream, letters(stream, letter, time), self.clock.time)
            while self.executor.step(self.clock):
                self._take()
        return self

    def _take(self) -> None:
        for batch in self.executor.take(self.clock.time).get("q", []):
            for row in batch.rows.to_pylist():
                name = "".join(f"{row[each]}{row[f'{each}_ts'].second}" for each in ("S", "T"))
                self.released.append((name, self.clock.time / SECOND))


def letters(stream: str, letter: str, time: int) -> pa.RecordBatch:
    stamps = pa.array([time * SECOND]).cast(TIMESTAMP)
    return pa.record_batch({stream: [letter], f"{stream}_ts": stamps, "ts": stamps})


def trace(method: Method, costs: Costs) -> list[tuple[str, float]]:
    given = [pa.schema([(name, pa.string()), (f"{name}_ts", TIMESTAMP)]) for name in ("S", "T")]
    join = OrderedJoin(given, [Side(("S",), WINDOW), Side(("T",), WINDOW)], method=method, alpha=0.3)
    return Trace(join, costs).run().released


@pytest.mark.parametrize("method", ["sync_filter", "adaptive"])
def test_sync_filter_puts_the_work_off_as_in_the_paper(method: Method) -> None:
    assert trace(method, Costs(pair=TP)) == [("a8a5", 11.1), ("b6b9", 12.1), ("c4c10", 12.2)]


@pytest.mark.parametrize("costs", [Costs(pair=TP), Costs(row=TP)], ids=["a pair", "a row"])
def test_filter_order_works_ahead_and_lets_out_before_it_probes_as_in_the_paper(costs: Costs) -> None:
    assert trace("filter_order", costs) == [("a8a5", 11.1), ("b6b9", 12.0), ("c4c10", 12.0)]


# Step by step


def rows(port: int, *times: int, until: int | None = None) -> Batch:
    given = schemas()[port]
    columns = {name: pa.array(["x"] * len(times) if name[0] == "k" else [None] * len(times), kind)
               for name, kind in zip(given.names, given.types, strict=True)}  # fmt: skip
    return Batch(pa.record_batch({**columns, TIME: pa.array(times)}), until)


def bound(join: OrderedJoin, port: int, until: int) -> list[Element]:
    return list(join.on_bound(port, Punctuation(until)))


def test_sync_filter_puts_rows_off_and_takes_as_many_as_it_may_in_order_of_time() -> None:
    join = ordered("sync_filter")
    assert list(join.on_batch(0, rows(0, 5, 1))) == [] and list(join.on_batch(1, rows(1, 3))) == []
    assert not join.unfinished and join.wants() == ({0: 1, 1: 1},)
    assert bound(join, 0, 9) == [] and not join.unfinished
    assert bound(join, 1, 6) == [] and join.unfinished
    assert join.held == 3
    assert list(join.on_more(1)) == [Punctuation(3)]
    joined, until = join.on_more(1)
    assert isinstance(joined, Batch) and joined.times.tolist() == [3] and until == Punctuation(5)
    joined, until = join.on_more(1)
    assert isinstance(joined, Batch) and joined.times.tolist() == [5] and until == Punctuation(6)
    assert not join.unfinished and join.wants() == ()


def test_filter_order_joins_at_once_and_holds_what_is_later_than_a_bound() -> None:
    join = ordered("filter_order")
    bound(join, 0, 4)
    bound(join, 1, 2)
    list(join.on_batch(0, rows(0, 4, 8)))
    assert list(join.on_batch(1, rows(1, 2, 6))) == [], "all results are later than 2"
    assert join.compared == 4 and not join.unfinished
    assert join.wants() == ({0: 4, 1: 4},)
    joined, until = bound(join, 1, 6)
    assert isinstance(joined, Batch) and joined.times.tolist() == [4] and until == Punctuation(4)
    joined, _ = bound(join, 0, 7)
    assert isinstance(joined, Batch) and joined.times.tolist() == [6]
    assert bound(join, 1, END_OF_TIME) == [Punctuation(7)] and join.wants() == ({0: 8, 1: 8},)
    joined, _ = bound(join, 0, END_OF_TIME)
    assert isinstance(joined, Batch) and joined.times.tolist() == [8, 8]
    assert join.held == 0


def test_a_result_at_the_bound_itself_leaves_with_its_row() -> None:
    join = ordered("filter_order")
    list(join.on_batch(0, rows(0, 1)))
    bound(join, 0, 9)
    bound(join, 1, 3)
    (joined,) = join.on_batch(1, rows(1, 3))
    assert isinstance(joined, Batch) and joined.times.tolist() == [3]


@pytest.mark.parametrize("method", METHODS)
def test_an_enabling_timestamp_of_a_silent_stream_releases_what_waits(method: Method) -> None:
    contract = "TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND FROM iterable"
    bench = Bench(f"""
        CREATE STREAM a (v INT, ts TIMESTAMP) {contract};
        CREATE STREAM b (w INT, ts TIMESTAMP) {contract};
        CREATE QUERY q WITH (join = '{method}') AS SELECT x.v, y.w
          FROM a [RANGE 10 SECONDS] AS x, b [RANGE 10 SECONDS] AS y WHERE x.v = y.w ORDER BY greatest(x.ts, y.ts);
    """)
    bench.push("a", "v | ts \n 1 | 00:00:02")
    bench.advance_time("1 second")
    bench.push("b", "w | ts \n 1 | 00:00:03")
    assert bench.results("q") == []
    bench.advance_time("2 seconds")
    assert bench.results("q") == [{"v": 1, "w": 1}]


# The adaptive join


def by_number(method: Method = "adaptive", alpha: float = 0.3) -> OrderedJoin:
    """Every pair in ten seconds is compared; those with equal numbers match."""
    residual = Call("=", (Call("-", (Column("n0"), Column("n1"))), Literal(0, pa.int64())))
    both = [Side((), 10 * SECOND), Side((), 10 * SECOND)]
    return OrderedJoin(schemas(), both, residual, method=method, alpha=alpha)


def feed(join: OrderedJoin, begin: int, end: int, rates: tuple[int, int], cost: float) -> None:
    """Evenly spaced rows of both ports, each told with its bound; a pair costs so many microseconds."""
    arriving = sorted((place * SECOND // rate, port) for port, rate in enumerate(rates)
                      for place in range(begin * rate, end * rate))  # fmt: skip
    for time, port in arriving:
        spend(join, join.on_bound(port, Punctuation(time)), cost)
        spend(join, join.on_batch(port, rows(port, time)), cost)


def spend(join: OrderedJoin, work: Iterator[Element], cost: float, limit: int | None = 1) -> list[Batch]:
    before = join.compared
    made = [each for each in work if isinstance(each, Batch)]
    join.on_cost(round((join.compared - before) * cost))
    return made + spend(join, join.on_more(limit), cost, limit) if join.unfinished else made


def test_the_adaptive_join_knows_its_rates_and_what_a_pair_costs() -> None:
    join = by_number()
    feed(join, 0, 30, (2, 5), cost=200)
    assert join.monitor is not None
    assert join.monitor.rates == pytest.approx((2, 5), rel=0.01)
    assert join.monitor.pair_cost == pytest.approx(200e-6)
    assert join.monitor.window == 10
    assert join.monitor.work == pytest.approx(200e-6 * 10 * 2 * 5, rel=0.02)


def test_the_adaptive_join_switches_when_the_work_reaches_alpha_and_drains_on_its_way_back() -> None:
    join = by_number()
    modes = []
    for begin, rates in ((0, (2, 5)), (30, (4, 10)), (60, (2, 5)), (90, (1, 5))):
        for second in range(begin, begin + 30):
            feed(join, second, second + 1, rates, cost=1500)
        modes.append((join.mode, join.join_metrics().switches))
    # On the way back it takes less than half of alpha, so that a load near it does not make it flap.
    assert modes == [("sync_filter", 0), ("filter_order", 1), ("filter_order", 1), ("sync_filter", 2)]


def test_a_load_that_is_there_from_the_start_is_seen_before_rates_are() -> None:
    """A window of a minute: its rates are known after a quarter of it."""
    residual = Call("=", (Call("-", (Column("n0"), Column("n1"))), Literal(0, pa.int64())))
    join = OrderedJoin(schemas(), [Side((), 60 * SECOND)] * 2, residual, method="adaptive", alpha=0.05)
    feed(join, 0, 4, (1, 10), cost=5000)
    assert join.monitor is not None and join.monitor.rates is None
    assert join.mode == "filter_order"


def test_its_metrics_tell_what_waits_where() -> None:
    sync, ordered = by_number("sync_filter"), by_number("filter_order")
    for join in (sync, ordered):
        for port, time in ((0, 1), (1, 1), (1, 2), (1, 3)):
            list(join.on_bound(port, Punctuation(time)))
            list(join.on_batch(port, rows(port, time)))
    assert sync.join_metrics() == JoinMetrics("sync_filter", 0, waiting=4, hold=0)
    assert ordered.join_metrics().waiting == 0


def ten_a_second(join: OrderedJoin, port: int, seconds: range) -> tuple[int, int]:
    """Rows that match all others within ten seconds; the most results that waited, and how many left."""
    most = left = 0
    for second in seconds:
        times = [second * SECOND + tenth * SECOND // 10 for tenth in range(10)]
        for work in (join.on_batch(port, rows(port, *times)), join.on_bound(port, Punctuation(times[-1] + 1))):
            left += sum(len(each) for each in spend(join, work, 500, None))
            most = max(most, join.join_metrics().hold)
    return most, left


def test_it_joins_in_order_while_more_results_would_wait_than_it_keeps_rows() -> None:
    together = [(port, range(second, second + 1)) for second in range(20) for port in (0, 1)]
    later = [(port, range(second + 50, second + 51)) for second in range(20) for port in (0, 1)]
    found = {}
    for method in METHODS:
        join = OrderedJoin(schemas(), [Side((f"k{port}",), 10 * SECOND) for port in (0, 1)], method=method, alpha=0.05)
        join.few = 3000
        # The second input comes in step with the first, then half a minute late, then in step again.
        steps = [*together, (0, range(20, 50)), (1, range(20, 50)), *later]
        ran = [(*ten_a_second(join, port, seconds), join.mode) for port, seconds in steps]
        most, left, modes = zip(*ran, strict=True)
        found[method] = sum(left), max(most), [modes[place] for place in (39, 40, -1)], join.switches
    assert len({left for left, *_ in found.values()}) == 1
    assert found["adaptive"][2:] == (["filter_order", "draining", "filter_order"], 3)
    assert found["filter_order"][1] > 4900 and found["adaptive"][1] < 4000


def test_it_takes_work_of_exactly_alpha_for_enough() -> None:
    modes = {}
    for alpha in (0.3, 0.301):
        join = by_number(alpha=alpha)
        feed(join, 0, 32, (4, 8), cost=937.5)
        modes[alpha] = join.mode
    assert modes == {0.3: "filter_order", 0.301: "sync_filter"}


def test_rates_do_not_depend_on_batches_and_survive_a_restart() -> None:
    times = np.sort(np.random.default_rng(1).integers(0, 40 * SECOND, 900))
    single, whole = (JoinMonitor([Side((), 10 * SECOND)] * 2) for _ in range(2))
    for time in times.tolist():
        single.arrived(0, rows(0, time))
    for monitor in (single, whole):
        monitor.reached(0, 0)
        monitor.reached(1, 0)
    whole.arrived(0, rows(0, *times.tolist()))
    for monitor in (single, whole):
        monitor.reached(0, 39 * SECOND)
        monitor.reached(1, 39 * SECOND)
    assert single.rates == whole.rates
    again = JoinMonitor([Side((), 10 * SECOND)] * 2)
    again.restore(json.loads(json.dumps(whole.note())))
    assert again.rates == whole.rates and whole.rates is not None
    assert whole.rates[0] == pytest.approx(900 / 40, rel=0.2) and whole.rates[1] == 0


def test_with_keys_half_of_what_the_rows_take_stands_for_the_work() -> None:
    monitor = JoinMonitor([Side(("k0",), 10 * SECOND), Side(("k1",), 10 * SECOND)])
    for port in (0, 1):
        monitor.reached(port, 0)
        monitor.arrived(port, rows(port, *range(0, 20 * SECOND, SECOND)))
        monitor.reached(port, 20 * SECOND)
    monitor.worked(rows=40, pairs=80)
    monitor.spent(40_000)
    assert monitor.window is None
    assert monitor.pair_cost == pytest.approx(500e-6)
    assert monitor.work == pytest.approx(0.001 * 2 / 2, rel=0.05)


def test_before_a_quarter_of_a_window_there_are_no_rates() -> None:
    monitor = JoinMonitor([Side((), 16 * SECOND)] * 2)
    for port in (0, 1):
        monitor.reached(port, 0)
        monitor.reached(port, 4 * SECOND)
    assert monitor.rates is None and monitor.work is None
    for port in (0, 1):
        monitor.reached(port, 5 * SECOND)
    assert monitor.rates == (0, 0)


def test_the_mode_survives_a_restart() -> None:
    join = by_number()
    feed(join, 0, 30, (4, 10), cost=1500)
    assert join.mode == "filter_order"
    changes = join.changes()
    again = by_number()
    again.restore(changes)
    assert again.mode == "filter_order" and again.monitor is not None and join.monitor is not None
    assert again.monitor.work == join.monitor.work
    assert json.loads(json.dumps(changes.note))["mode"] == "filter_order"
