"""An update queue against plain Python: any policy, any cut into batches, any number of restarts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.updates.queue_settings import Access, QueueSettings
from millrace.kernel.updates.update_batch import hashed_shares
from millrace.kernel.updates.update_queue import UpdateQueue
from tests.reference_updates import LOSSLESS, POLICIES, Delivery, Row, Simulation
from tests.unit.kernel.update_queues import Server, check_counts, restored, singly, whole

KEYS = "abcdef"


@st.composite
def traces(draw: st.DrawFn, ports: int = 1, most: int = 60) -> list[Row]:
    """Rows in order of arrival, some of them older than others of their key, some of equal time."""
    steps = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), st.sampled_from(KEYS),
                                    st.integers(0, ports - 1)), max_size=most))  # fmt: skip
    rows, arrival = list[Row](), draw(st.sampled_from([0, 1_700_000_000_000_000]))
    for value, (gap, behind, key, port) in enumerate(steps):
        arrival += gap
        rows.append(Row(arrival, arrival + behind, key, value, port))
    return rows


def cut_at(places: Sequence[int]) -> object:
    """A cut of each batch at places of its own."""
    numbers = iter(places)

    def cut(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        while rows:
            size = max(next(numbers, len(rows)), 1)
            yield rows[:size]
            rows = rows[size:]

    return cut


def learned(cost: int, served: int) -> float | None:
    """What a queue takes a row to cost when so many have been served: to the last digit, for it decides who cuts."""
    worked = spent = 0.0
    for _ in range(served):
        worked, spent = 0.9 * worked + 1, 0.9 * spent + cost
    return spent / worked if served else None


def simulated(policy: str, cost: int, rows: Sequence[Row], until: int | None, **options: object) -> Simulation:
    keep = 0.6 if policy == "append_shed" else 1.0
    return Simulation(
        policy, cost, keeps=lambda number: bool(hashed_shares(number, 1)[0] < keep),
        known_cost=partial(learned, cost), **options,  # type: ignore[arg-type]
    ).run(rows, until)  # fmt: skip


ACCESS = (
    Access(7, Call("<", (Column("k"), Literal("c", pa.string())))),
    Access(20, Call("=", (Column("k"), Literal("e", pa.string())))),
)


def chosen(policy: str, memory: str = "released") -> QueueSettings:
    """The settings of a policy, or of one that serves keys by when they are read."""
    if policy == "access":
        return QueueSettings("inplace", memory=memory, access=ACCESS)
    return QueueSettings(policy, keep=0.6 if policy == "append_shed" else None, memory=memory)


def made(policy: str, inputs: int = 1, truth: int | None = None) -> UpdateQueue:
    return UpdateQueue(["k"], chosen(policy), inputs, truth)


@pytest.mark.slow
@settings(max_examples=8 * settings.default.max_examples)
@given(
    rows=traces(ports=2), cost=st.integers(1, 6), policy=st.sampled_from(POLICIES), sizes=st.lists(st.integers(1, 9)),
    truth=st.sampled_from([None, 0, 1]), stops=st.booleans(),
)  # fmt: skip
def test_a_queue_does_what_the_reference_does(
    rows: list[Row], cost: int, policy: str, sizes: list[int], truth: int | None, stops: bool
) -> None:
    until = rows[-1].arrival if stops and rows else None
    expected = simulated(policy, cost, rows, until, truth=truth)
    server = Server(made(policy, inputs=2, truth=truth), cost, cut=cut_at(sizes)).run(rows, until)  # type: ignore[arg-type]
    assert [(each.let_go, each.row.value) for each in server.deliveries] == [
        (each.let_go, each.row.value) for each in expected.deliveries
    ]
    check_counts(server.queue)
    metrics = server.queue.queue_metrics(server.queue.now)
    assert (metrics.entered, metrics.let_go, metrics.superseded, metrics.shed, metrics.waiting) == (
        expected.entered, expected.let_go, expected.superseded, expected.shed, expected.waiting,
    )  # fmt: skip
    check_staleness(server.queue, expected, server.queue.now + 7)


def check_staleness(queue: UpdateQueue, expected: Simulation, now: int) -> None:
    """Each key is as stale as the reference has it, at present and on average."""
    for row in queue.staleness(now).to_pylist():
        key = expected.keys[row["k"]]
        queue_since, application_since = key.queue_since(now), key.application_since(now)
        assert row["waiting"] == (queue_since is not None)
        assert row["queue_now"] == (0 if queue_since is None else now - queue_since)
        assert row["application_now"] == (0 if application_since is None else now - application_since)
        assert row["queue_mean"] == pytest.approx(expected.queue_mean(row["k"], now))
        assert row["application_mean"] == pytest.approx(expected.application_mean(row["k"], now))
    metrics = queue.queue_metrics(now)
    total = sum(row["queue_now"] for row in queue.staleness(now).to_pylist())
    assert metrics.queue_now * max(metrics.keys, 1) == pytest.approx(total)


EVERY = ("append", "append_shed", "update_fifo", "inplace", "linecutting", "linecutting_as_printed", "auto", "access")


def outcome(server: Server) -> object:
    queue = server.queue
    now = queue.now + 5
    return (
        [(each.let_go, each.row) for each in server.deliveries],
        queue.queue_metrics(now),
        queue.staleness(now).to_pylist(),
    )


@pytest.mark.slow
@settings(max_examples=4 * settings.default.max_examples)
@given(rows=traces(ports=2), cost=st.integers(1, 6), policy=st.sampled_from(EVERY), sizes=st.lists(st.integers(1, 9)))
def test_the_result_does_not_depend_on_how_rows_are_batched(
    rows: list[Row], cost: int, policy: str, sizes: list[int]
) -> None:
    expected = outcome(Server(made(policy, inputs=2), cost, cut=whole).run(rows))
    assert outcome(Server(made(policy, inputs=2), cost, cut=singly).run(rows)) == expected
    assert outcome(Server(made(policy, inputs=2), cost, cut=cut_at(sizes)).run(rows)) == expected  # type: ignore[arg-type]


@pytest.mark.slow
@settings(max_examples=4 * settings.default.max_examples)
@given(rows=traces(), cost=st.integers(1, 6), policy=st.sampled_from(EVERY), stops=st.sets(st.integers(0, 60)))
def test_restarts_change_nothing(rows: list[Row], cost: int, policy: str, stops: set[int]) -> None:
    expected = outcome(Server(made(policy), cost).run(rows))
    segments: dict[int, pa.Table] = {}

    def between(served: int, queue: UpdateQueue) -> UpdateQueue:
        return restored(queue, segments) if served in stops else queue

    assert outcome(Server(made(policy), cost, between=between).run(rows)) == expected


@pytest.mark.slow
@settings(max_examples=4 * settings.default.max_examples)
@given(
    rows=traces(), cost=st.integers(1, 6), changes=st.dictionaries(st.integers(0, 60), st.sampled_from(EVERY)),
    restarts=st.booleans(), first=st.sampled_from(EVERY),
)  # fmt: skip
def test_a_queue_that_changes_its_policy_loses_nothing(
    rows: list[Row], cost: int, changes: dict[int, str], restarts: bool, first: str
) -> None:
    segments: dict[int, pa.Table] = {}
    policies: dict[int, str] = {}

    def between(served: int, queue: UpdateQueue) -> UpdateQueue:
        if served in changes:
            other = chosen(changes[served], "naive" if served % 2 else "released")
            if restarts:
                queue = restored(queue, segments, other)
            else:
                queue.configure(other)
            check_counts(queue)
        policies[served] = queue.settings.policy
        return queue

    server = Server(made(first), cost, between=between).run(rows)
    check_counts(server.queue)
    check_answers(rows, server, sheds="append_shed" in {first, *changes.values()})
    check_never_back(server.deliveries, [policies[at] for at in range(len(server.deliveries))])


def check_answers(rows: Sequence[Row], server: Server, sheds: bool) -> None:
    """Without shedding a key ends with its newest row; with it, it is stale since the next row behind its last."""
    accepted: dict[object, list[Row]] = {}
    for row in rows:
        known = accepted.setdefault(row.key, [])
        if not known or row.time >= known[-1].time:
            known.append(row)
    delivered = {each.row.value for each in server.deliveries}
    now = server.queue.now
    for each in server.queue.staleness(now).to_pylist():
        known = accepted[each["k"]]
        reached = max((at for at, row in enumerate(known, 1) if row.value in delivered), default=0)
        assert sheds or reached == len(known)
        assert each["application_now"] == (now - known[reached].arrival if reached < len(known) else 0)


def check_never_back(deliveries: Sequence[Delivery], policies: Sequence[str]) -> None:
    """What leaves an update queue is never older than what left before it, whatever the queue was then."""
    last: dict[object, int] = {}
    for each, policy in zip(deliveries, policies, strict=True):
        key, time = each.row.key, each.row.time
        assert policy in LOSSLESS or time >= last.get(key, time)
        last[key] = max(time, last.get(key, time))
