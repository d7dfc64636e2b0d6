"""A power cut at every call of a commit: nothing that was committed is lost, nothing appears twice."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from millrace.hosts.checkpoint.file_system import using
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from millrace.testing.simulated_files import PowerCut, SimulatedFiles
from tests.crash import real_power_cuts
from tests.crash.loop_disk import loop_disk
from tests.unit.hosts.kept_epochs import kept

SQL = """
CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{0}/in');
CREATE STREAM u (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k)
  FROM csv OPTIONS (path '{0}/updates');
CREATE SINK counts TO csv OPTIONS (path '{0}/disk/counts');
CREATE SINK kept TO python OPTIONS (writer 'tests.unit.hosts.kept_epochs:KeptEpochs', folder '{0}/kept');
CREATE QUERY q INTO counts AS SELECT k, count(*) AS n FROM s [RANGE 2 SECONDS SLIDE 2 SECONDS WA ts] GROUP BY k;
CREATE QUERY w INTO kept AS SELECT k, ts FROM s;
CREATE QUERY latest AS SELECT k, v FROM u;
"""
FILES, ROWS = 2, 4


def prepare(folder: Path) -> Path:
    """The inputs, and the folder that stands for the disk; a second of rows after the other."""
    for name, head in (("in", "k,ts"), ("updates", "k,v,ts")):
        (folder / name).mkdir(parents=True)
        for file in range(FILES):
            at = [f"2024-01-01 00:00:{file * ROWS + row:02d}" for row in range(ROWS)]
            lines = [f"{'ab'[row % 2]},{f'{row},' if name == 'updates' else ''}{time}" for row, time in enumerate(at)]
            (folder / name / f"{file}.csv").write_text("\n".join([head, *lines, ""]))
    (folder / "disk").mkdir()
    return folder / "disk"


def run(folder: Path, disk: SimulatedFiles) -> LocalRun:
    options = RunOptions("local", "available", checkpoint=folder / "disk" / "state", commit_interval=0)
    with using(disk):
        local = LocalRun(parse_network(SQL.format(folder)), options)
        local.run()
    return local


def seen(folder: Path, local: LocalRun) -> tuple[list[list[str]], list[str], list[tuple[str, int]]]:
    """The rows of the sink's files, those that the writer has kept, and the latest answers."""
    files = sorted((folder / "disk" / "counts").glob("part-*"))
    rows = sorted(row for path in files for row in list(csv.reader(path.open()))[1:])
    latest = local.answers.of("latest").table().select(["k", "v"]).to_pylist()
    return rows, sorted(row["ts"] for row in kept(folder / "kept")), sorted((row["k"], row["v"]) for row in latest)


def cut_and_go_on(folder: Path, call: int, seed: int | None) -> tuple[object, bool]:
    """What is seen after a power cut at a call, and a second run; and if the cut came."""
    disk = SimulatedFiles(prepare(folder), {call: "cut"})
    cut = False
    try:
        run(folder, disk)
    except PowerCut:
        cut = True
    disk.crash(seed)
    return seen(folder, run(folder, disk)), cut


@pytest.mark.slow
def test_a_power_cut_at_any_call_of_a_run_on_local_loses_and_repeats_nothing(tmp_path: Path) -> None:
    prepare(tmp_path / "whole")
    whole = SimulatedFiles(tmp_path / "whole" / "disk")
    expected = seen(tmp_path / "whole", run(tmp_path / "whole", whole))
    assert [len(each) for each in expected] == [6, 8, 2]
    calls = [call for call, each in enumerate(whole.operations) if each.kind not in ("read", "map", "list")]
    cuts, wrong = 0, []
    for call in calls:
        found, cut = cut_and_go_on(tmp_path / str(call), call, None if call % 2 else call)
        wrong += [call] if found != expected else []
        # How many commits there are depends on how fast they are.
        cuts += cut
    assert cuts > len(calls) // 2
    assert wrong == []


@pytest.mark.long
@pytest.mark.parametrize(("on", "count"), [("local", 50), ("spark", 10)])
def test_cuts_of_the_power_of_a_real_disk_lose_and_repeat_nothing(on: str, count: int, tmp_path: Path) -> None:
    try:
        with loop_disk(tmp_path, 256):
            pass
    except OSError as error:
        pytest.skip(f"no disk whose power can be cut: {error}; runs as root where loop devices can be mounted")
    found = list(real_power_cuts.cuts(on, count))
    assert [each for each in found if each.lost or each.repeated or each.code] == []
