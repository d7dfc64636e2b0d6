"""Keys that are read every so often are let go just before (002 section 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.elements import Batch
from millrace.kernel.updates.queue_settings import Access, QueueSettings
from millrace.kernel.updates.update_queue import UpdateQueue
from tests.reference_updates import Row
from tests.unit.kernel.update_queues import Server, batch_of, queue_of, restored

SECOND = 1_000_000
COST = 10_000


def in_class(first: str) -> Call:
    """Whether a key begins with a letter."""
    return Call("like", (Column("k"), Literal(f"{first}%", pa.string())))


ACCESS = (Access(2 * SECOND, in_class("r")), Access(5 * SECOND, in_class("s")))


def rows_of(seconds: int) -> list[Row]:
    """Five times what a server can take, for 20 keys of each class and 40 that are read all the time."""
    names = [f"{letter}{at}" for letter, many in (("r", 20), ("s", 20), ("c", 40)) for at in range(many)]
    chosen = np.random.default_rng(2).integers(0, len(names), seconds * SECOND * 5 // COST)
    return [Row(at * COST // 5, at, names[key], at) for at, key in enumerate(chosen.tolist())]


def at_reads(server: Server, rows: Sequence[Row], every: int, letter: str) -> float:
    """The mean staleness of the keys of a class when they are read, from what was delivered."""
    arrivals, delivered = defaultdict[object, list[int]](list), defaultdict[object, list[tuple[int, int]]](list)
    for row in rows:
        arrivals[row.key].append(row.arrival)
    for each in server.deliveries:
        delivered[each.row.key].append((each.delivered, each.row.arrival))
    found = []
    for key in (key for key in arrivals if str(key).startswith(letter)):
        for moment in range(every, rows[-1].arrival, every):
            last = max((arrival for at, arrival in delivered[key] if at <= moment), default=-1)
            newer = [arrival for arrival in arrivals[key] if last < arrival <= moment]
            found.append(moment - newer[0] if newer else 0)
    return float(np.mean(found))


def served(access: tuple[Access, ...], rows: Sequence[Row]) -> Server:
    return Server(queue_of("inplace", access=access), COST).run(rows, rows[-1].arrival)


@pytest.mark.slow
def test_keys_are_fresher_when_they_are_read_and_the_others_are_served_between() -> None:
    rows = rows_of(30)
    plain, timed = served((), rows), served(ACCESS, rows)
    for every, letter in ((2 * SECOND, "r"), (5 * SECOND, "s")):
        assert at_reads(timed, rows, every, letter) < 0.5 * at_reads(plain, rows, every, letter)
    # Those that are read all the time lose little, for the others are let go no more often than they are read.
    always = [at_reads(each, rows, SECOND // 10, "c") for each in (plain, timed)]
    assert always[1] < 1.3 * always[0]


@pytest.mark.slow
def test_classes_that_cannot_make_it_do_not_starve_the_others() -> None:
    rows = rows_of(10)
    plain = served((), rows)
    timed = served((Access(COST * 4, in_class("r")), Access(COST * 8, in_class("s"))), rows)
    for letter in "rsc":
        assert at_reads(timed, rows, SECOND // 10, letter) < 1.3 * at_reads(plain, rows, SECOND // 10, letter)


@pytest.mark.parametrize("count", [1, 7, 60])
def test_a_key_is_of_the_first_class_whose_condition_holds(count: int) -> None:
    every = (Access(SECOND, in_class("r")), Access(4 * SECOND))
    queue = queue_of("inplace", access=every)
    queue.learn_cost(100_000.0)
    queue.on_time(0)
    list(queue.on_batch(0, batch_of([Row(0, at, name, at) for at, name in enumerate(["x1", "x2", "r1", "r2"])])))
    found: list[str] = []
    while queue.held:
        for batch in queue.on_more(count):
            found += [row["k"] for row in batch.rows.to_pylist()]  # type: ignore[union-attr]
    assert found == ["r1", "r2", "x1", "x2"], "nothing is read all the time: the earliest reads come first"


def test_keys_press_just_before_they_are_read_or_when_they_were_not_let_go_in_time() -> None:
    queue = queue_of("inplace", access=(Access(8 * SECOND),))
    queue.learn_cost(float(COST))

    def presses(at: float, *names: str) -> bool:
        """Whether the queue is urgent at a moment, after updates of some keys."""
        now = int(at * SECOND)
        queue.on_time(now)
        if names:
            list(queue.on_batch(0, batch_of([Row(now, now, name, 0) for name in names])))
        assert queue.urgency(now) > 0
        return queue.urgency(now) > 1e-12

    assert not presses(0.5, "a", "b") and not presses(6.9)
    assert presses(7.1)
    assert [len(batch.rows) for batch in queue.on_more(1) if isinstance(batch, Batch)] == [1]
    assert presses(9), "one of them was still waiting at 8 seconds"
    list(queue.on_more(1))
    assert not presses(9, "a", "b") and not presses(10, "c")
    assert presses(14.5, *(f"k{at}" for at in range(100))), "there is work for a second, and less than two are left"
    list(queue.on_more(103))
    assert not presses(15.8, "a"), "it has been let go for the moment at hand"
    assert not presses(17), "it was updated again after that, and is read in seven seconds"
    assert presses(23.5)


def test_other_classes_hold_from_then_on_and_after_a_restart() -> None:
    rows = [Row(0, at, name, at) for at, name in enumerate(["c1", "r1", "s1", "r2"])]

    def order(queue: UpdateQueue, left: int) -> list[str]:
        """What leaves when there is time for so many rows before the next moment of reading."""
        queue.learn_cost(float(COST))
        queue.on_time(8 * SECOND - left * COST)
        [batch] = queue.on_more(4)
        assert isinstance(batch, Batch)
        return [row["k"] for row in batch.rows.to_pylist()]

    queue = queue_of("inplace", access=ACCESS)
    list(queue.on_batch(0, batch_of(rows)))
    assert order(restored(queue, {}), 2) == ["r1", "r2", "c1", "s1"]
    queue.configure(QueueSettings("inplace", access=(Access(SECOND, in_class("s")),)))
    assert order(queue, 1) == ["s1", "c1", "r1", "r2"]
