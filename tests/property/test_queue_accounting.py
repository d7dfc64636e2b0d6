"""Every row of an update stream is accounted for, whatever queries do with it and whenever one looks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.clock import StandingClock
from millrace.kernel.graph.executor import Executor
from millrace.kernel.progress.quarantine import UnreadRows, places
from millrace.language import parse_network
from millrace.plan.physical.stages import physical

SECOND = 1_000_000
STREAM = """
CREATE STREAM {0} (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS UPDATE KEY (k) FROM iterable;
"""
POLICIES = ("append", "append_shed", "update_fifo", "inplace", "linecutting", "auto")


def rows(drawn: list[tuple[int, int, int]]) -> pa.RecordBatch:
    columns = zip(*drawn, strict=True)
    types = (pa.int32(), pa.int32(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    times = pc.multiply(arrays[2], SECOND).cast(pa.timestamp("us", tz="UTC"))
    return pa.record_batch([*arrays[:2], times], names=["k", "v", "ts"])


UPDATES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=12)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.sampled_from("ab"), UPDATES),
        st.tuples(st.just("open"), st.sampled_from([None, 0, 1, 3])),
        st.tuples(st.just("reject"), st.sampled_from("ab"), st.integers(1, 3)),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(
    policies=st.tuples(*[st.sampled_from(POLICIES)] * 3),
    least=st.integers(0, 9),
    actions=ACTIONS,
    step=st.sampled_from([None, 1, 3]),
)
def test_received_is_the_sum_of_what_became_of_the_rows(
    policies: tuple[str, str, str], least: int, actions: list[Any], step: int | None
) -> None:
    """A query reads all of `a`, one reads some of it, and one reads both streams."""
    options = [f"queue = '{policy}'" + (", keep = 0.5" if policy == "append_shed" else "") for policy in policies]
    sql = f"""{STREAM.format("a")}{STREAM.format("b")}
    CREATE QUERY every WITH ({options[0]}) AS SELECT k, v FROM a;
    CREATE QUERY some WITH ({options[1]}) AS SELECT k, v FROM a WHERE v >= {least};
    CREATE QUERY both WITH ({options[2]}) AS SELECT k, v FROM a UNION b;
    """
    executor = Executor(physical(parse_network(sql)).whole(), rows_per_step=step)
    clock, received = StandingClock(0), {"a": 0, "b": 0}
    for action in actions:
        clock.time += SECOND
        match action:
            case ("push", name, drawn):
                executor.push(name, rows(drawn), clock.time)
                received[name] += len(drawn)
            case ("reject", name, count):
                bad = UnreadRows(pa.array(["bad"] * count), lambda at: places(["x"] * len(at), None, at))
                executor.edges.reject(name, bad, clock.time)
                received[name] += count
            case ("open", allowed):
                executor.queue_gate.open(allowed)
        executor.run(clock)
        taken = executor.take(clock.time)
        assert all(len(batch) for batches in taken.values() for batch in batches)
        check(executor, received)
    executor.queue_gate.open(None)
    executor.run(clock)
    executor.take(clock.time)
    check(executor, received)
    assert not any(source.buffered for source in executor.metrics().sources.values())


def check(executor: Executor, received: dict[str, int]) -> None:
    metrics = executor.metrics()
    for name, source in metrics.sources.items():
        others = source.late + source.quarantined + source.shed + source.superseded + source.buffered
        assert source.received == received[name] == source.processed + others
        assert source.processed == min(_processed(executor, name))
    for queue in metrics.queues.values():
        assert queue.entered == queue.let_go + queue.superseded + queue.shed + queue.waiting
        assert sum(each.entered for each in queue.by_input) == queue.entered


def _processed(executor: Executor, stream: str) -> list[int]:
    """Of each reader of a stream the rows that a filter dropped, and those that its queue let go."""
    metrics, found = executor.metrics(), []
    admitted = metrics.sources[stream].admitted
    for name, queue in executor.queue_gate.queues().items():
        for arc in executor.graph.nodes[name].inputs:
            node = arc.producer
            while node.inputs:
                node = node.inputs[0].producer
            if node.stream == stream:
                counts = queue.queue_metrics(0).by_input[arc.port]
                found.append(admitted - counts.entered + counts.let_go)
    return found
