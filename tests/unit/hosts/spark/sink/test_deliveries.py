from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millrace.errors import CheckpointError, RunError
from millrace.hosts.sinks.writers import WriterSpec, stage_rows
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.sink.deliveries import Deliveries, is_behind, staged_folder, visible_at
from tests.unit.hosts.kept_epochs import KeptEpochs, calls, kept

PLACE = "tests.unit.hosts.kept_epochs:KeptEpochs"
SCHEMA = pa.schema([("n", pa.int64())])
PATIENCE = 30.0


class Site:
    """A checkpoint in which micro-batches are committed by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkpoint, self.batch = folder, folder / "state", -1
        self.log = CommitLog(self.checkpoint / "commits")

    def spec(self, query: str = "q", kept: str = "kept") -> WriterSpec:
        return WriterSpec(query, PLACE, (("folder", str(self.folder / kept)), ("run", "r")), SCHEMA)

    def stage(self, batch: int, query: str, *values: int) -> dict[str, str]:
        path = staged_folder(self.checkpoint, query) / f"part-{batch:08d}-0000.arrow"
        path.parent.mkdir(parents=True, exist_ok=True)
        return {path.name: stage_rows(path, self.spec(query), pa.table({"n": pa.array(values, pa.int64())}))}

    def commit(self, *values: int, query: str = "q") -> dict[str, Any]:
        """A micro-batch with these rows for a writer."""
        self.batch += 1
        staged = self.stage(self.batch, query, *values) if values else {}
        outputs = {query: {"rows": len(values), "files": [], "staged": staged}}
        record = {"batch": self.batch, "outputs": outputs, "committed": time.time_ns() // 1000}
        self.log.write(self.batch, record)
        return record

    def deliveries(self) -> Deliveries:
        """Those of a run that has just started."""
        found = Deliveries(self.checkpoint)
        found.resume({})
        return found

    def numbers(self, kept_in: str = "kept") -> list[int]:
        return [row["n"] for row in kept(self.folder / kept_in)]

    def left(self) -> list[str]:
        return [path.name for path in (self.checkpoint / "staged").glob("*/*")]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    KeptEpochs.opened.clear()
    return Site(tmp_path)


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_what_is_committed_is_delivered_by_one_writer_in_order(site: Site) -> None:
    at_work = site.deliveries()
    at_work.use([site.spec()])
    site.commit(1, 2)
    wait(lambda: site.numbers() == [1, 2])
    site.commit()
    site.commit(3)
    at_work.drain()
    at_work.stop()
    assert [(epoch, [row["n"] for row in rows]) for *_, epoch, rows in calls(site.folder / "kept")] == [
        (0, [1, 2]),
        (2, [3]),
    ]
    assert [writer.closed for writer in KeptEpochs.opened] == [True]
    assert site.left() == []


def test_what_a_run_has_left_is_delivered_by_the_next_even_if_the_query_has_left(site: Site) -> None:
    at_work = site.deliveries()
    at_work.use([site.spec()])
    at_work.stop()
    site.commit(1)
    again = site.deliveries()
    again.use([])
    again.drain()
    again.stop()
    assert site.numbers() == [1]


def test_a_writer_that_fails_ends_the_run_and_is_given_the_rows_again(site: Site) -> None:
    at_work = site.deliveries()
    at_work.use([site.spec()])
    (site.folder / "kept").mkdir()
    (site.folder / "kept" / "fail_after").touch()
    site.commit(1)
    with pytest.raises(RunError, match='of query "q" failed in epoch 0: ConnectionError: lost after'):
        at_work.drain()
    with pytest.raises(RunError, match="failed in epoch 0"):
        at_work.check()
    at_work.stop()
    assert not is_behind(site.checkpoint, 99), "no commit waits for a run that has failed"
    site.commit(2)
    again = site.deliveries()
    again.use([site.spec()])
    again.drain()
    again.stop()
    assert [epoch for _, _, epoch, _ in calls(site.folder / "kept")] == [0, 0, 1]
    assert site.numbers() == [1, 2]


def test_commits_wait_while_a_writer_is_slow(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, slow = site.deliveries(), [True]
    write = KeptEpochs.write

    def slowly(self: KeptEpochs, *given: Any) -> None:
        wait(lambda: not slow[0])
        write(self, *given)

    monkeypatch.setattr(KeptEpochs, "write", slowly)
    at_work.use([site.spec()])
    for number in range(4):
        assert not is_behind(site.checkpoint, site.batch + 1)
        site.commit(number)
    assert [is_behind(site.checkpoint, batch) for batch in (3, 4)] == [False, True]
    slow[0] = False
    at_work.drain()
    assert not is_behind(site.checkpoint, site.batch + 1)
    at_work.stop()


def test_results_for_a_writer_can_be_seen_when_it_has_them(site: Site) -> None:
    at_work = site.deliveries()
    at_work.use([site.spec()])
    at_work.stop()
    record = site.commit(1)
    before = visible_at(site.checkpoint, record)
    assert before > record["committed"]
    site.deliveries().deliver()
    seen = visible_at(site.checkpoint, record)
    assert seen >= before
    time.sleep(0.01)
    assert visible_at(site.checkpoint, record) == seen
    nothing = site.commit()
    assert visible_at(site.checkpoint, nothing) == nothing["committed"]


def test_files_of_a_micro_batch_that_was_run_again_after_its_delivery_go_too(site: Site) -> None:
    site.commit(1)
    site.deliveries().deliver()
    site.stage(0, "q", 1)
    site.commit(2)
    site.deliveries().deliver()
    assert (site.left(), site.numbers()) == ([], [1, 2])


def test_stores_of_a_run_that_is_resumed_are_reached_as_its_queries_say_now(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    reaches = staticmethod(lambda option: option == "folder")
    monkeypatch.setattr(KeptEpochs, "reaches", reaches, raising=False)
    site.commit(1)
    again = Deliveries(site.checkpoint)
    again.resume({"q": replace(site.spec("r", "moved"), query="r")})
    again.deliver()
    site.commit(2)
    again.deliver()
    assert (site.numbers("moved"), site.numbers()) == ([1], [2]), "later rows say themselves where they go"


def test_staged_rows_that_are_damaged_are_refused(site: Site) -> None:
    site.commit(1)
    (path,) = (site.checkpoint / "staged").glob("*/*")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError):
        site.deliveries().deliver()
    assert site.numbers() == []


def test_a_run_that_has_lost_its_checkpoint_to_another_delivers_nothing(site: Site) -> None:
    site.log.claim("second")
    site.commit(1)
    with pytest.raises(RunError, match="taken over the checkpoint"):
        Deliveries(site.checkpoint, "first").deliver()
    assert site.numbers() == []


def test_a_checkpoint_without_writers_has_no_mark(site: Site) -> None:
    at_work = site.deliveries()
    at_work.use([])
    at_work.drain()
    at_work.stop()
    assert not (site.checkpoint / "delivered").exists()
