"""A sink that is ahead of its checkpoint is refused, and of two runs on one checkpoint only one commits."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millrace.errors import CheckpointError, RequestError, RunError
from millrace.hosts.checkpoint.durable_files import lock_checkpoint
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.failures import CarriedError
from millrace.hosts.spark.sink.destinations import Destinations
from millrace.hosts.spark.sink.network_sink import NetworkWriter, TaskOutput
from millrace.language import parse_network

SQL = """
CREATE STREAM s (n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM {1};
CREATE SINK o TO csv OPTIONS (path '{0}/out');
CREATE QUERY q INTO o AS SELECT n FROM s;
"""


def run(folder: Path, *numbers: int, state: str = "state") -> None:
    """A run on what files there are, and one with a row per number more."""
    (folder / "in").mkdir(exist_ok=True)
    text = "".join(f"{number},2024-01-01 00:00:{number:02d}\n" for number in numbers)
    (folder / "in" / f"{numbers[0]}.csv").write_text(f"n,ts\n{text}")
    network = parse_network(SQL.format(folder, f"csv OPTIONS (path '{folder}/in')"))
    LocalRun(network, RunOptions("local", "available", checkpoint=folder / state)).run()


def results(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "out").iterdir()}


def test_an_old_copy_of_a_checkpoint_is_refused_on_local_and_nothing_is_touched(tmp_path: Path) -> None:
    run(tmp_path, 1)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    run(tmp_path, 2)
    before = results(tmp_path)
    with pytest.raises(CheckpointError, match=r'out" of sink "o" holds results of epoch 1.*copy" is at epoch 0'):
        run(tmp_path, 3, state="copy")
    assert results(tmp_path) == before


def test_an_old_copy_goes_on_when_the_later_results_are_removed_as_the_hint_says(tmp_path: Path) -> None:
    run(tmp_path, 1)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    run(tmp_path, 2)
    (tmp_path / "out" / "part-00000001.csv").unlink()
    run(tmp_path, 3, state="copy")
    assert results(tmp_path) == {"part-00000000.csv": '"n"\n1\n', "part-00000001.csv": '"n"\n2\n3\n'}


def test_a_checkpoint_stays_locked_when_all_files_in_it_are_removed(tmp_path: Path) -> None:
    held = lock_checkpoint(tmp_path)
    (tmp_path / "lock").unlink(missing_ok=True)
    with pytest.raises(RequestError, match="another run goes on from the checkpoint"):
        lock_checkpoint(tmp_path)
    held.close()
    lock_checkpoint(tmp_path).close()


def test_of_two_runs_on_one_checkpoint_the_first_to_commit_goes_on_and_the_other_writes_nothing(tmp_path: Path) -> None:
    network = parse_network(SQL.format(tmp_path, "iterable"))
    options = RunOptions("local", "available", checkpoint=tmp_path / "state", commit_interval=0)
    row = {"n": 1, "ts": "2024-01-01 00:00:01"}

    def fed() -> Iterator[Any]:
        yield [row]
        yield [row | {"n": 2}]
        # As on two machines that do not see each other's locks.
        first._control._lock.close()  # type: ignore[union-attr]
        LocalRun(network, options, feeds={"s": [[row], [row | {"n": 2}], [row | {"n": 7}]]}).run()
        after.update(results(tmp_path))
        yield [row | {"n": 3}]

    after: dict[str, str] = {}
    first = LocalRun(network, options, feeds={"s": fed()})
    with pytest.raises(RunError, match=r'another run has taken over the checkpoint ".*state"'):
        first.run()
    assert after and results(tmp_path) == after


def test_a_run_whose_checkpoint_is_replaced_by_an_old_copy_stops(tmp_path: Path) -> None:
    network = parse_network(SQL.format(tmp_path, "iterable"))
    options = RunOptions("local", "available", checkpoint=tmp_path / "state", commit_interval=0)
    row = {"n": 1, "ts": "2024-01-01 00:00:01"}

    def fed() -> Iterator[Any]:
        yield [row]
        yield []
        shutil.copy(tmp_path / "state" / "current.json", tmp_path / "old.json")
        yield [row]
        yield []
        shutil.copy(tmp_path / "old.json", tmp_path / "state" / "current.json")
        yield [row]

    with pytest.raises(RunError, match="taken over the checkpoint"):
        LocalRun(network, options, feeds={"s": fed()}).run()


def test_a_run_that_has_lost_its_commit_log_to_another_gives_no_file_its_name(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "commits")
    log.claim("first")
    writer = NetworkWriter({"folder": str(tmp_path), "owner": "first"})
    writer.commit([TaskOutput(0)], 0)
    log.claim("second")
    with pytest.raises(CarriedError, match="another run has taken over the checkpoint"):
        writer.commit([TaskOutput(0)], 1)
    assert [batch for batch, _ in log.records()] == [0]


@pytest.mark.parametrize(("newest", "begun", "refused"), [(4, 4, False), (5, 5, False), (5, 4, True), (6, 5, True)])
def test_an_old_copy_of_a_spark_checkpoint_is_refused(tmp_path: Path, newest: int, begun: int, refused: bool) -> None:
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / str(begun)).touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f"part-{newest:08d}-0001.csv").touch()
    CommitLog(tmp_path / "commits").write(4, {"batch": 4})
    queries = parse_network(SQL.format(tmp_path, f"csv OPTIONS (path '{tmp_path}')")).queries
    if not refused:
        Destinations(tmp_path, queries, fresh=False)
        return
    with pytest.raises(CheckpointError, match=f'sink "o" holds results of epoch {newest}'):
        Destinations(tmp_path, queries, fresh=False)
