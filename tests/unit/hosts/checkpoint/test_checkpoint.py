from __future__ import annotations

from pathlib import Path

import pytest

from millrace.errors import CheckpointError
from millrace.hosts.checkpoint.checkpoint import Checkpoint, fingerprint
from millrace.hosts.control.live_changes import HistoryEntry
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.graph.executor import Executor
from millrace.language import parse_network
from millrace.plan.physical.stages import Physical, physical
from tests.property.cases import batch, declared

SQL = (
    declared("s", 5)
    + "CREATE QUERY q AS SELECT k, count(*) AS n FROM s [RANGE {0} SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k;"
)


def plan(length: int = 10) -> Physical:
    return physical(parse_network(SQL.format(length)))


def worked(executor: Executor, second: int) -> Executor:
    row = {"k": "a", "j": 1, "v": 1, "x": 1.0, "ts": second * 1_000_000}
    executor.push("s", batch([row]), 0)
    executor.run(StandingClock(0))
    executor.take(0)
    return executor


def test_a_new_folder_holds_nothing(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "new", plan()).load() is None


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    executor = worked(Executor(plan().whole()), 3)
    saved = executor.save()
    Checkpoint(tmp_path, plan()).save(7, saved, {"s": {"files": 2}}, {}, {"q": 1})
    resumed = Checkpoint(tmp_path, plan()).load()
    assert resumed is not None
    assert (resumed.epoch, resumed.positions, resumed.results) == (7, {"s": {"files": 2}}, {"q": 1})
    assert {place: table.to_pylist() for place, table in resumed.segments.items()} == {
        place: table.to_pylist() for place, table in saved.added.items()
    }


def test_the_changes_made_to_the_network_are_part_of_it(tmp_path: Path) -> None:
    history = [
        HistoryEntry("ADD QUERY p AS SELECT k FROM s", ((NO_BOUND, (("s@sequence", 3),)),)),
        HistoryEntry("DROP QUERY q"),
    ]
    changes = {"text": None, "history": [entry.data() for entry in history]}
    Checkpoint(tmp_path, plan()).save(0, Executor(plan().whole()).save(), {}, {}, {}, changes)
    resumed = Checkpoint(tmp_path, plan()).load()
    assert resumed is not None
    assert [HistoryEntry.of(each) for each in resumed.changes["history"]] == history


def test_segments_that_are_no_longer_needed_are_removed(tmp_path: Path) -> None:
    checkpoint, executor = Checkpoint(tmp_path, plan()), Executor(plan().whole())
    for second in range(0, 200, 3):
        checkpoint.save(second, worked(executor, second).save(), {}, {}, {})
    assert len(list(tmp_path.glob("*.arrow"))) < 10


def test_a_save_that_was_cut_short_is_as_if_it_never_was(tmp_path: Path) -> None:
    checkpoint, executor = Checkpoint(tmp_path, plan()), worked(Executor(plan().whole()), 3)
    checkpoint.save(1, executor.save(), {}, {}, {})
    (tmp_path / ".current.json").write_text('{"layout": 1, "epo')
    (tmp_path / "q.window_aggregate-99.arrow").write_bytes(b"half a fi")
    resumed = Checkpoint(tmp_path, plan()).load()
    assert resumed is not None
    assert resumed.epoch == 1


def test_other_queries_do_not_go_on_from_it(tmp_path: Path) -> None:
    Checkpoint(tmp_path, plan(10)).save(1, Executor(plan(10).whole()).save(), {}, {}, {})
    with pytest.raises(CheckpointError, match="belongs to other queries"):
        Checkpoint(tmp_path, plan(20)).load()


def test_the_fingerprint_is_that_of_the_text() -> None:
    assert fingerprint(plan(10)) == fingerprint(plan(10))
    assert fingerprint(plan(10)) != fingerprint(plan(20))


def test_a_checkpoint_of_another_layout_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    record = tmp_path / "current.json"
    record.write_text('{"layout": 4, "network": "", "segments": [["q.window_aggregate", 0]], "staged": {}}')
    with pytest.raises(CheckpointError, match="was made by another version of Millrace"):
        Checkpoint(tmp_path, plan()).load()
    assert list(tmp_path.iterdir()) == [record]
