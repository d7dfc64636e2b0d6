from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.expressions import Column
from millrace.kernel.progress.ets import ets_at
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.partition_progress import PartitionProgress, newest
from millrace.kernel.progress.time_contract import TimeContract

TIMESTAMP = pa.timestamp("us", tz="UTC")
PER = TimeContract("external", "ts", punctuation=Column("until"), per=("k",))
PARTITIONED = TimeContract("external", "ts", partitions=("k",))


def seen(now: int, **times: int) -> PartitionProgress:
    """Parts with their greatest times, which they also allow."""
    standings = PartitionProgress()
    codes = standings.numbers_of(list(times))
    standings.see(codes, np.array(list(times.values())), now)
    standings.allowed[codes] = list(times.values())
    return standings


def known(standings: PartitionProgress) -> dict[str, tuple[int, int, int]]:
    columns = (standings.greatest.tolist(), standings.seen_at.tolist(), standings.allowed.tolist())
    return dict(zip(standings.names, zip(*columns, strict=True), strict=True))


def rows(*pairs: tuple[int | str, int]) -> pa.RecordBatch:
    """Rows of a group and a time each, which is also what they promise."""
    times = pa.array([time for _, time in pairs]).cast(TIMESTAMP)
    return pa.record_batch({"k": [key for key, _ in pairs], "ts": times, "until": times})


def test_each_part_is_as_far_as_either_has_seen_it() -> None:
    standings = seen(1, a=10, b=20)
    standings.absorb(seen(2, b=15, c=5).whole())
    standings.absorb(seen(3, a=11).whole())
    assert known(standings) == {"a": (11, 3, 11), "b": (20, 2, 20), "c": (5, 2, 5)}


def test_changes_are_of_the_parts_that_have_changed() -> None:
    standings = seen(1, **{f"k{number}": number for number in range(100)})
    assert len(standings.changes()) > 0
    standings.see(np.array([7, 7, 3]), np.array([500, 400, 1]), now=2)
    changed = PartitionProgress()
    changed.restore([standings.changes()])
    assert known(changed) == {"k3": (3, 2, 3), "k7": (500, 2, 7)}
    assert standings.changes() == ""
    standings.absorb(seen(3, k5=600).whole())
    changed.restore([standings.changes()])
    assert known(changed) == {"k5": (600, 3, 600)}, "what was learnt of others is a change too"


def test_of_several_texts_the_last_one_counts() -> None:
    merged = PartitionProgress()
    merged.restore([newest([seen(1, a=1, b=2).whole(), seen(2, c=3).whole(), seen(3, b=9).whole()])])
    assert known(merged) == {"a": (1, 1, 1), "b": (9, 3, 9), "c": (3, 2, 3)}


def test_an_edge_that_shares_says_nothing_of_partitions_and_knows_them_all() -> None:
    source, edge, port = Ingress(PARTITIONED), Ingress(PARTITIONED), Ingress(PARTITIONED)
    port.order.share(edge.order)
    source.admit(rows(("a", 10), ("b", 20)), now=1)
    edge.follow([source.progress()])
    assert port.order.parts == 2
    assert port.save()["order"] == {}
    again = Ingress(PARTITIONED)
    again.order.share(edge.order)
    again.restore(port.save())
    assert again.order.slowest(9) == edge.order.slowest(9)


def test_changes_of_files_read_side_by_side_count_among_all_partitions() -> None:
    source, high = Ingress(PARTITIONED), Ingress(PARTITIONED)
    source.admit(rows(("slow", 10), ("a", 10), ("b", 10)), now=1)
    high.follow([source.progress()])
    tasks = []
    for key in "ab":
        task = Ingress(PARTITIONED)
        task.resume(source.progress())
        task.frozen = True
        task.admit(rows((key, 90)), now=2)
        tasks.append(task.progress(task.order.changes()))
    high.follow(tasks)
    assert high.bound == 10, "though neither file says anything of the slow one"
    assert [part.bound for part in high.order.slowest(3)] == [10, 90, 90]


def test_groups_that_have_been_told_are_not_told_again_after_a_restore() -> None:
    edge = Ingress(PER)
    edge.admit(rows((1, 10), (2, 20)), now=1)
    untold = json.loads(json.dumps(edge.save()))
    assert edge.order.group_promises() is not None
    told = json.loads(json.dumps(edge.save()))
    again = Ingress(PER)
    again.restore(told)
    assert again.order.group_promises() is None
    again.admit(rows((2, 30)), now=2)
    news = again.order.group_promises()
    assert news is not None
    assert (news.keys.to_pylist(), news.until.tolist()) == ([{"k": 2}], [30])
    again.restore(untold)
    assert (again.order.group_promises() or news).keys.num_rows == 2


def test_a_busy_stream_is_read_up_to_the_part_furthest_behind_of_those_heard_last() -> None:
    ingress = Ingress(PARTITIONED)
    assert ingress.reached(1_000) is None
    ingress.admit(rows(("a", 400)), now=900)
    ingress.admit(rows(("b", 700), ("c", 500)), now=950)
    assert ingress.reached(1_000) == 500
    assert ingress.reached(450) == 450, "not later than it was looked at"


def test_the_silence_of_parts_counts_from_a_restart_on() -> None:
    ingress = Ingress(TimeContract("external", "ts", 0, "on_demand", lull=30, partitions=("k",)))
    ingress.admit(rows(("a", 50), ("b", 40)), now=100)
    ingress.restart_silence(500)
    assert ets_at(ingress, 529) is None
    assert ets_at(ingress, 530) == 500


def test_a_part_has_sent_rows_over_the_time_between_its_first_and_its_last() -> None:
    standings = seen(1, a=1_000, b=400)
    standings.see(standings.numbers_of(["a"]), np.array([1_300]), 2)
    standings.numbers_of(["c"])
    assert standings.spans().tolist() == [300, 0, 0]


def test_a_bound_has_moved_when_it_last_rose() -> None:
    ingress = Ingress(PARTITIONED)
    for until, now in ((10, 5), (20, 9), (20, 30), (15, 40)):
        ingress.raise_bound(until, now)
    assert (ingress.bound, ingress.moved_at) == (20, 9)
