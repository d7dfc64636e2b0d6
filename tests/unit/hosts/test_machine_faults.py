"""Trouble of the machine, full disks and lost folders, is told with its path; what follows it is exact."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from millrace.errors import CheckpointError, MillraceError, RunError, machine_faults, of_path
from millrace.hosts.checkpoint.file_system import Files, using
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network

ROWS = [f"{number % 3},2024-01-01 00:00:{number:02d}" for number in range(12)]
RESULTS = [f"{key},{count}" for key, count in [(0, 1), (1, 1), (2, 1)] * 4]


class FailingFiles(Files):
    """Files of which one call fails, the one of this number."""

    def __init__(self, number: int, code: int) -> None:
        self.left, self.code = number, code

    def _may_fail(self, path: Path) -> None:
        self.left -= 1
        if self.left == 0:
            with of_path(path):
                raise OSError(self.code, "no")

    @contextmanager
    def create(self, path: Path) -> Iterator[Any]:
        self._may_fail(path)
        with super().create(path) as stream:
            yield stream
            self._may_fail(path)

    def rename(self, path: Path, to: Path) -> None:
        self._may_fail(path)
        super().rename(path, to)

    def sync_file(self, path: Path) -> None:
        self._may_fail(path)
        super().sync_file(path)

    def sync_folder(self, path: Path) -> None:
        self._may_fail(path)
        super().sync_folder(path)


def run(folder: Path) -> None:
    network = parse_network(f"""
        CREATE STREAM s (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{folder}/in');
        CREATE SINK o TO csv OPTIONS (path '{folder}/out', header 'false');
        CREATE QUERY q INTO o AS SELECT k, count(*) AS n FROM s [RANGE 3 SECONDS SLIDE 3 SECONDS WA ts] GROUP BY k;
    """)
    LocalRun(network, RunOptions("local", "end", checkpoint=folder / "state", commit_interval=0)).run()


def put(folder: Path) -> None:
    (folder / "in").mkdir(parents=True)
    for part in range(4):
        lines = ["k,ts", *ROWS[part * 3 : part * 3 + 3]]
        (folder / "in" / f"{part}.csv").write_text("\n".join(lines) + "\n")


def results(folder: Path) -> list[str]:
    lines = (line for path in sorted((folder / "out").glob("part-*")) for line in path.read_text().splitlines())
    return [",".join(line.split(",")[-2:]) for line in lines]


@pytest.mark.slow
def test_a_call_of_the_disk_that_fails_is_named_and_the_next_run_is_exact(tmp_path: Path) -> None:
    told, codes = 0, cycle([errno.ENOSPC, errno.EIO, errno.EACCES])
    for number in range(1, 200, 3):
        code, folder = next(codes), tmp_path / str(number)
        put(folder)
        with using(FailingFiles(number, code)) as disk:
            try:
                run(folder)
            except MillraceError as error:
                told += 1
                assert str(folder) in error.fact
                assert "start again on the same --checkpoint" in error.hint or "cannot be made" in error.fact
        run(folder)
        assert sorted(results(folder)) == sorted(RESULTS), number
        if disk.left > 0:
            break
    assert told > 5, "many calls were tried"


def test_a_sink_folder_that_is_removed_during_the_run_is_named(tmp_path: Path) -> None:
    put(tmp_path)

    class Removing(Files):
        @contextmanager
        def create(self, path: Path) -> Iterator[Any]:
            if path.name.startswith(".part"):
                (tmp_path / "out").rmdir()
            with super().create(path) as stream:
                yield stream

    with using(Removing()), pytest.raises(RunError, match=r'out/.part-\d+.csv" cannot be used: no such file') as raised:
        run(tmp_path)
    assert "make the folder again" in raised.value.hint
    run(tmp_path)
    assert sorted(results(tmp_path)) == sorted(RESULTS)


def test_trouble_without_a_path_is_not_told_as_that_of_a_file() -> None:
    with pytest.raises(OSError, match="no") as raised, machine_faults():
        raise OSError(errno.EPIPE, "no")
    assert not isinstance(raised.value, CheckpointError)
