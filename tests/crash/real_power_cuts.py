"""Power cuts on a real file system: `python -m tests.crash.real_power_cuts local 50` says how many lost results."""

from __future__ import annotations

import csv
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

import millrace.commands.command_line  # noqa: F401 - loaded once, before the fork
from millrace.__main__ import main as main_of_command_line
from tests.crash.loop_disk import LoopDisk, loop_disk

SQL = """
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path '{0}/in', max_files_per_trigger '1');
CREATE SINK counts TO csv OPTIONS (path '{1}/counts');
CREATE SINK rows TO parquet OPTIONS (path '{1}/rows');
CREATE QUERY counted INTO counts AS
  SELECT k, count(*) AS n, sum(v) AS total FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k;
CREATE QUERY passed INTO rows AS SELECT k, v, ts FROM s;
"""
ROWS = 10
FILES = {"local": 60, "spark": 12}
SETTINGS = {"local": ["--commit-interval", "10 ms"], "spark": ["--master", "local[2]", "--trigger", "0 seconds"]}
PATIENCE = 300.0


@dataclass(frozen=True)
class Outcome:
    """What a cut has done: result files seen before it, empty ones after it, how the second run ended, rows lost and
    repeated."""

    seen: int
    empty: int
    code: int
    lost: int
    repeated: int
    said: str


def cuts(on: str, count: int, seed: int = 0) -> Iterator[Outcome]:
    """One power cut after the other, at moments that chance decides, each on a new disk."""
    chance = random.Random(seed)
    for _ in range(count):
        with TemporaryDirectory(prefix="millrace-cut-") as folder, loop_disk(Path(folder), 256) as disk:
            _write_input(Path(folder) / "in", FILES[on])
            (Path(folder) / "network.sql").write_text(SQL.format(folder, disk.path))
            yield _cut(Path(folder), disk, on, chance)


def _cut(folder: Path, disk: LoopDisk, on: str, chance: random.Random) -> Outcome:
    run = _start(folder, on)
    try:
        seen = _wait_for(disk.path, chance.randrange(2, FILES[on]), run)
        time.sleep(chance.random() * (0.01 if on == "local" else 0.5))
        disk.cut()
    finally:
        os.killpg(run, signal.SIGKILL)
        os.waitpid(run, 0)
    _start_again(disk)
    empty = sum(1 for path in _results(disk.path) if not path.stat().st_size)
    code = os.waitstatus_to_exitcode(os.waitpid(_start(folder, on), 0)[1])
    expected, found = _expected(FILES[on]), _found(disk.path)
    said = (folder / "said").read_text()
    return Outcome(seen, empty, code, (expected - found).total(), (found - expected).total(), said)


def _start(folder: Path, on: str) -> int:
    """A run in a process of its own, and of its own group; it is forked, to begin at once."""
    sys.argv = ["millrace", "run", str(folder / "network.sql"), "--on", on, "--available-now", *SETTINGS[on]]
    sys.argv += ["--checkpoint", str(folder / "disk" / "state")]
    if process := os.fork():
        return process
    try:
        os.setsid()
        told = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(told, 1)
        os.dup2(told, 2)
        code = main_of_command_line()
        sys.stderr.flush()
        os._exit(code)
    finally:
        os._exit(99)


def _wait_for(disk: Path, files: int, run: int) -> int:
    """Wait until so many result files can be seen, or the run has ended; how many there are."""
    until = time.monotonic() + PATIENCE
    while (seen := len(_results(disk))) < files and time.monotonic() < until:
        if os.waitid(os.P_PID, run, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        time.sleep(0.001)
    return seen


def _start_again(disk: LoopDisk) -> None:
    """Mount the disk as soon as the processes that were killed have let it go."""
    for attempt in range(100):
        try:
            disk.start()
            return
        except OSError:
            if attempt == 99:
                raise
            time.sleep(0.1)


def _results(disk: Path) -> list[Path]:
    return [*(disk / "counts").glob("part-*"), *(disk / "rows").glob("part-*")]


def _write_input(folder: Path, files: int) -> None:
    folder.mkdir()
    for number in range(files):
        lines = [f"{'abc'[row % 3]},{row},{_time(number * ROWS + row)}" for row in range(ROWS)]
        (folder / f"{number:05d}.csv").write_text("\n".join(["k,v,ts", *lines, ""]))


def _time(second: int) -> str:
    return f"2024-01-01 {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _expected(files: int) -> Counter[tuple[str, ...]]:
    """What the sinks must hold, counted row by row: windows that the last row has passed, and every row."""
    rows = [(second, "abc"[second % ROWS % 3], second % ROWS) for second in range(files * ROWS)]
    last = rows[-1][0]
    expected = Counter[tuple[str, ...]]()
    for start in range(-10, last + 1, 10):
        inside = [row for row in rows if start <= row[0] < start + 20]
        for key in {row[1] for row in inside} if start + 20 <= last else ():
            values = [row[2] for row in inside if row[1] == key]
            expected[key, str(len(values)), str(sum(values))] += 1
    expected.update((key, str(value), _time(second)) for second, key, value in rows)
    return expected


def _found(disk: Path) -> Counter[tuple[str, ...]]:
    found = Counter[tuple[str, ...]]()
    for path in _results(disk):
        try:
            if path.suffix == ".csv":
                found.update((row["k"], row["n"], row["total"]) for row in csv.DictReader(path.open()))
            else:
                rows = pq.read_table(path, partitioning=None).to_pylist()
                found.update((row["k"], str(row["v"]), row["ts"].strftime("%Y-%m-%d %H:%M:%S")) for row in rows)
        except (pa.ArrowInvalid, OSError):
            continue
    return found


def main(on: str, count: str) -> int:
    """Say what each cut has done, and how many lost or repeated results."""
    bad = 0
    for number, each in enumerate(cuts(on, int(count))):
        wrong = bool(each.lost or each.repeated or each.code)
        bad += wrong
        said = each.said.strip().splitlines()[0] if each.said.strip() and wrong else ""
        print(
            f"cut {number}: {each.seen} files seen, {each.empty} empty, exit {each.code}, "
            f"{each.lost} rows lost, {each.repeated} repeated {said}",
            flush=True,
        )
    print(f"{bad} of {count} cuts lost or repeated results, or ended the second run")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
