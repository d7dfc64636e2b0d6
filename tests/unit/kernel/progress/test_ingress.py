"""A stream read by several progressing attributes: its own time, a further column, sequence numbers, late rows."""

from __future__ import annotations

import pyarrow as pa

from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.clock import StandingClock
from millrace.kernel.columns.expressions import Column
from millrace.kernel.elements import ARRIVED, NO_BOUND, PARTITION, TIME, GroupPunctuation
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.time_contract import LATE, SEQUENCE, TimeContract
from millrace.kernel.relational.filter import Filter
from millrace.language import bind_expression

TIMES = pa.timestamp("us", tz="UTC")
FLOW = TimeContract("external", "finish", also=(("start", 50),))


def flows(*rows: tuple[int | None, int | None]) -> pa.RecordBatch:
    """Rows of a start and an end."""
    starts, ends = zip(*rows, strict=True)
    return pa.record_batch({"start": pa.array(starts, TIMES), "finish": pa.array(ends, TIMES)})


def outlets(contract: TimeContract, *names: str) -> Executor:
    """A stream with a sink for each outlet."""
    graph = Graph()
    for name in names:
        source = graph.outlet(f"s@{name}", "s", contract, name) if name else graph.source("s", contract)
        graph.sink(name or "own", source)
    return Executor(graph)


def taken(executor: Executor, now: int = 0) -> dict[str, list[int]]:
    """The times of the rows at each sink."""
    executor.run(StandingClock(now))
    return {name: [int(t) for b in batches for t in b.times] for name, batches in executor.take(now).items()}


def test_a_row_has_the_time_of_the_outlet_it_comes_by() -> None:
    executor = outlets(FLOW, "", "start", SEQUENCE)
    executor.push("s", flows((10, 20), (5, 30)), 0)
    assert taken(executor) == {"own": [20, 30], "start": [10, 5], SEQUENCE: [0, 1]}
    executor.push("s", flows((7, 40)), 0)
    assert taken(executor) == {"own": [40], "start": [7], SEQUENCE: [2]}


def test_a_row_below_the_bound_of_any_attribute_is_late_for_all() -> None:
    executor = outlets(FLOW, "", "start", SEQUENCE, LATE)
    executor.push("s", flows((100, 120), (49, 130), (50, 140), (200, 110)), 7)
    assert taken(executor, 7) == {"own": [120, 140], "start": [100, 50], SEQUENCE: [0, 1], LATE: [7, 7]}
    assert (executor.ingress["s"].received, executor.ingress["s"].late) == (4, 2)


def test_a_row_without_a_further_time_is_quarantined() -> None:
    executor = outlets(FLOW, "", "start")
    executor.push("s", flows((None, 20), (5, 30)), 0)
    assert taken(executor) == {"own": [30], "start": [5]}
    assert executor.ingress["s"].quarantined == 1


def test_late_rows_keep_their_columns() -> None:
    executor = outlets(TimeContract("external", "finish"), LATE)
    executor.push("s", flows((1, 20), (2, 10)), 99)
    executor.run(StandingClock(99))
    (batch,) = executor.take(99)[LATE]
    assert batch.rows.select(["start", "finish"]).to_pylist() == flows((2, 10)).to_pylist()
    assert [name for name in batch.rows.schema.names if name in (TIME, ARRIVED)] == [TIME]


def test_progress_of_all_outlets_is_saved_and_restored() -> None:
    first, second = Ingress(FLOW), Ingress(FLOW)
    first.outlet(SEQUENCE)
    first.admit(flows((100, 120), (90, 130)), 0)
    second.restore(first.save())
    assert (second.sequence, second.outlet("start").bound, second.outlet(SEQUENCE).bound) == (2, 50, 0)
    assert len(second.admit(flows((49, 140)), 0).late) == 1


def test_rows_windows_close_by_sequence_number_after_a_filter() -> None:
    graph = Graph()
    source = graph.outlet("s@sequence", "s", FLOW, SEQUENCE)
    kept = graph.operator("filter", Filter(bind_expression("start > '1970-01-01'", flows((0, 0)).schema)), [source])
    partials = Partials(WindowGeometry(2, 2), [], [FunctionCall("n", "count")])
    graph.sink("counts", graph.operator("aggregate", WindowAggregate(partials, has_numbers=True), [kept]))
    executor = Executor(graph)
    executor.push("s", flows((0, 1), (1, 2), (2, 3), (3, 4), (4, 5)), 0)
    executor.run(StandingClock(0))
    rows = [row for batch in executor.take(0)["counts"] for row in batch.rows.to_pylist()]
    assert [(row["window_start"], row["window_end"], row["n"]) for row in rows] == [(0, 2, 1), (2, 4, 2)]


DEVICES = TimeContract("external", "finish", punctuation=Column("start"), per=("k",))


def readings(*rows: tuple[str, int, int | None]) -> pa.RecordBatch:
    """Rows of a device, a time, and what it promises."""
    keys, times, promises = zip(*rows, strict=True)
    return pa.record_batch({"k": list(keys), "finish": pa.array(times, TIMES), "start": pa.array(promises, TIMES)})


def test_a_promise_for_a_group_makes_rows_of_other_groups_no_later() -> None:
    ingress = Ingress(DEVICES)
    admission = ingress.admit(readings(("a", 100, 90), ("b", 10, None), ("a", 80, None), ("b", 5, 5)), 0)
    assert admission.late.times.tolist() == [80]
    assert admission.admitted.times.tolist() == [100, 10, 5]
    assert ingress.admit(readings(("b", 4, None), ("b", 5, None), ("c", 1, None)), 0).late.times.tolist() == [4]


def promises(news: GroupPunctuation | None) -> dict[str, int]:
    """Groups and their bounds."""
    assert news is not None
    return dict(zip(news.keys.column("k").to_pylist(), news.until.tolist(), strict=True))


def test_the_news_are_the_groups_that_advanced_or_are_new() -> None:
    ingress = Ingress(DEVICES)
    ingress.admit(readings(("a", 100, 90), ("b", 10, None)), 0)
    assert promises(ingress.order.group_promises()) == {"a": 90, "b": -(2**63)}
    assert ingress.order.group_promises() is None
    ingress.admit(readings(("b", 10, 10), ("a", 100, 50)), 0)
    assert promises(ingress.order.group_promises()) == {"b": 10}


def test_who_follows_a_stream_learns_what_its_groups_promise() -> None:
    reader, follower = Ingress(DEVICES), Ingress(DEVICES)
    reader.admit(readings(("a", 100, 90)), 0)
    follower.follow([reader.progress()])
    assert promises(follower.order.group_promises()) == {"a": 90}
    reader.admit(readings(("a", 100, 95), ("b", 1, 1)), 0)
    follower.follow([reader.progress()])
    assert promises(follower.order.group_promises()) == {"a": 95, "b": 1}


def _of_source(*rows: tuple[str, int]) -> pa.RecordBatch:
    names, times = zip(*rows, strict=True)
    return pa.record_batch({"ts": pa.array(times, pa.timestamp("us")), PARTITION: pa.array(names)})


def test_the_bound_waits_for_the_partitions_of_the_source_that_are_expected() -> None:
    contract = TimeContract("external", "ts").by_source_partition()
    edge = Ingress(contract)
    edge.order.expect([("a",), ("b",)])
    edge.admit(_of_source(("a", 50)), 0)
    assert edge.bound == NO_BOUND
    assert edge.admit(_of_source(("b", 7), ("b", 9)), 1).late.rows.num_rows == 0
    assert edge.bound == 9


def test_no_row_has_the_partition_of_its_source_behind_the_edge() -> None:
    contract = TimeContract("external", "ts").by_source_partition()
    admission = Ingress(contract).admit(_of_source(("a", 50), ("a", 40)), 0)
    assert PARTITION not in admission.admitted.rows.schema.names
    assert PARTITION not in admission.late.rows.schema.names
    assert (len(admission.admitted), len(admission.late)) == (1, 1)


def test_a_contract_that_says_where_its_order_holds_is_not_by_the_partitions_of_the_source() -> None:
    for own in (
        TimeContract("external", "ts", partitions=("k",)),
        TimeContract("external", "ts", rows=5),
        TimeContract("internal", "ts"),
        TimeContract("latent"),
    ):
        assert own.by_source_partition() is own
