from __future__ import annotations

from pathlib import Path

import pytest

from millrace.errors import CheckpointError
from millrace.hosts.spark.commit_log.commit_log import CommitLog


def record(files: int, **more: object) -> dict[str, object]:
    return {"sources": {"bids": {"files": files, **more}}}


def test_an_empty_log_knows_nothing(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "none")
    assert log.newest() is None
    assert log.before(3) is None
    log.check([])
    assert list(log.records()) == []
    assert log.source("bids", 0) == {}


def test_a_log_that_lacks_a_record_is_refused(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for batch in (4, 5, 7):
        log.write(batch, {"batch": batch})
    with pytest.raises(CheckpointError, match=f'"{tmp_path / "00000006.json"}" of the checkpoint is missing'):
        log.check([])
    with pytest.raises(CheckpointError, match="00000006"):
        log.before(7)
    log.write(6, {"batch": 6})
    log.check([6, 7])
    with pytest.raises(CheckpointError, match="00000008"):
        log.check([8])


def test_records_come_back_in_batch_order_whatever_order_they_were_written_in(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for batch in (10, 2, 123456789):
        log.write(batch, {"batch": batch})
    assert list(log.records()) == [(batch, {"batch": batch}) for batch in (2, 10, 123456789)]
    assert [batch for batch, _ in log.records(after=2)] == [10, 123456789]
    assert log.newest() == {"batch": 123456789}
    assert log.before(11) == {"batch": 10}


def test_a_source_is_as_the_newest_record_with_that_many_files_knew_it(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for batch, (files, greatest) in enumerate([(1, 10), (1, 11), (2, 20)]):
        log.write(batch, record(files, greatest=greatest))
    assert log.source("bids", 1) == {"files": 1, "greatest": 11}
    assert log.source("bids", 3) == {}
    assert log.source("asks", 1) == {}


def test_a_record_written_again_replaces_the_first_and_leaves_no_draft(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    log.write(0, record(1))
    log.write(0, record(2))
    assert log.newest() == record(2)
    assert [path.name for path in tmp_path.iterdir()] == ["00000000.json"]


def test_pruning_keeps_the_newest_records(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for batch in range(5):
        log.write(batch, record(batch))
    log.prune(keep=2)
    assert [batch for batch, _ in log.records()] == [3, 4]


def test_a_record_that_is_pruned_while_others_are_read_is_left_out(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for batch in range(4):
        log.write(batch, record(batch))
    reading = log.records()
    assert next(reading)[0] == 0
    log.prune(keep=2)
    assert [batch for batch, _ in reading] == [2, 3]
