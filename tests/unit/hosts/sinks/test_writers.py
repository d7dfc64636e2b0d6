from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import RequestError, RunError
from millrace.hosts.checkpoint.durable_files import read_arrow, write_arrow
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.sinks.writers import OpenWriters, WriterSpec, run_name, stage_rows, write_epoch, writer_of
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import bind_changes, parse_network
from millrace.plan.nodes.query_network import QueryNetwork
from tests.unit.hosts.fed import Fed, received, row
from tests.unit.hosts.kept_epochs import KeptEpochs, calls, kept

COLUMNS = "n INT, ts TIMESTAMP"
PLACE = "tests.unit.hosts.kept_epochs:KeptEpochs"


def network(folder: Path, options: str | None = None) -> QueryNetwork:
    """One csv stream of a folder `in` to a writer that keeps rows in the folder `kept`."""
    (folder / "in").mkdir(exist_ok=True)
    return parse_network(declared(folder, options))


def declared(folder: Path, options: str | None = None) -> str:
    options = options or f"writer '{PLACE}', folder '{folder / 'kept'}'"
    return f"""
        CREATE STREAM s ({COLUMNS}) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{folder / "in"}') REPLAY BY ts;
        CREATE SINK o TO python OPTIONS ({options});
        CREATE QUERY q INTO o AS SELECT n FROM s;
    """


def put(folder: Path, *numbers: int) -> None:
    lines = [f"{number},2024-01-01 00:00:00.{number:02d}" for number in numbers]
    (folder / "in" / f"{numbers[0]:04d}.csv").write_text("n,ts\n" + "\n".join(lines) + "\n")


def run(folder: Path) -> None:
    LocalRun(network(folder), RunOptions("local", "available", checkpoint=folder / "state")).run()


def numbers(folder: Path) -> list[int]:
    return sorted(row["n"] for row in kept(folder / "kept"))


def test_a_writer_is_given_every_epoch_that_has_rows_and_they_only_grow(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        if number != 2:
            network(tmp_path)
            put(tmp_path, number)
        run(tmp_path)
    given = calls(tmp_path / "kept")
    assert [rows for *_, rows in given] == [[{"n": 1}], [{"n": 3}]]
    assert given[0][2] < given[1][2]
    assert len({name for name, *_ in given}) == 1, "a checkpoint has one name"
    assert list((tmp_path / "state" / "staged").iterdir()) == []


def test_a_writer_is_given_its_options_its_schema_and_its_query_and_is_closed(tmp_path: Path) -> None:
    KeptEpochs.opened.clear()
    given = network(tmp_path)
    put(tmp_path, 1, 2)
    LocalRun(given, RunOptions("local", "end")).run()
    (writer,) = KeptEpochs.opened
    assert (writer.schema, writer.query, writer.closed) == (pa.schema([("n", pa.int32())]), "q", True)
    assert set(writer.options) == {"folder", "run"}
    assert numbers(tmp_path) == [1, 2]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_epoch_that_failed_is_given_again_with_the_same_rows(moment: str, tmp_path: Path) -> None:
    network(tmp_path)
    put(tmp_path, 1, 2)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / f"fail_{moment}").touch()
    with pytest.raises(
        RunError, match=rf'the writer "{PLACE}" of query "q" failed in epoch \d+: ConnectionError: lost'
    ):
        run(tmp_path)
    put(tmp_path, 3)
    run(tmp_path)
    given = calls(tmp_path / "kept")
    if moment == "after":
        assert given[0] == given[1]
    assert numbers(tmp_path) == [1, 2, 3]


def test_an_epoch_is_given_again_though_its_query_has_left(tmp_path: Path) -> None:
    given = network(tmp_path)
    put(tmp_path, 1)
    first = LocalRun(given, RunOptions("local", "available", checkpoint=tmp_path / "state"))
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "fail_before").touch()
    with pytest.raises(RunError, match="failed in epoch"):
        first.run()
    staged = {str(path): "writer of q" for path in (tmp_path / "state" / "staged").iterdir()}
    assert staged
    # The query's class, options and columns are in the staged file.
    first.outputs.prepare([])()
    first.outputs.publish(staged)
    assert numbers(tmp_path) == [1]


def test_what_no_epoch_knows_is_swept_away(tmp_path: Path) -> None:
    network(tmp_path)
    put(tmp_path, 1)
    run(tmp_path)
    write_arrow(tmp_path / "state" / "staged" / "q-00000009.arrow", pa.table({"n": [9]}))
    run(tmp_path)
    assert numbers(tmp_path) == [1]
    assert list((tmp_path / "state" / "staged").iterdir()) == []


def test_another_checkpoint_is_another_run(tmp_path: Path) -> None:
    given = network(tmp_path)
    put(tmp_path, 1)
    for name in ("one", "other"):
        LocalRun(given, RunOptions("local", "available", checkpoint=tmp_path / name)).run()
    assert numbers(tmp_path) == [1, 1]
    assert run_name(tmp_path / "one", fresh=False) == run_name(tmp_path / "one", fresh=False)
    assert run_name(tmp_path / "one", fresh=False) != run_name(tmp_path / "one", fresh=True)


def test_writers_are_given_the_results_of_virtual_time_too(tmp_path: Path) -> None:
    given = network(tmp_path)
    put(tmp_path, 1, 2)
    VirtualRun(given).run()
    assert numbers(tmp_path) == [1, 2]


def test_a_writer_can_be_given_as_a_class(tmp_path: Path) -> None:
    net = mr.Network()
    stream = net.stream("s", COLUMNS, time="ts", source=[[{"n": 1, "ts": 0}]])
    net.query("q", stream.select("n"), sink="python", writer=KeptEpochs, folder=tmp_path / "kept")
    handle = net.run(on="local", until="end")
    assert numbers(tmp_path) == [1]
    with pytest.raises(RequestError, match=f'the results of query "q" go to the writer "{PLACE}"'):
        handle.results("q")


SECOND = "DROP QUERY q; ADD QUERY q INTO o AS SELECT n, -n AS less FROM s"


def test_a_query_that_replaces_another_in_virtual_time_has_a_writer_of_its_own(tmp_path: Path) -> None:
    KeptEpochs.opened.clear()
    given = network(tmp_path)
    put(tmp_path, 1, 2, 3, 4)
    changes = LiveChanges(given, declared(tmp_path), bind_changes)
    begins = 1_704_067_200_000_000
    VirtualRun(given, changes=changes, scripted=[(begins + 25_000, SECOND)]).run()
    assert [sorted(row) for row in kept(tmp_path / "kept")] == [["n"], ["n"], ["less", "n"], ["less", "n"]]
    assert [(writer.schema.names, writer.closed) for writer in KeptEpochs.opened] == [
        (["n"], True),
        (["n", "less"], True),
    ]


def test_a_query_that_leaves_a_running_network_is_handed_over_and_its_writer_closed(tmp_path: Path) -> None:
    KeptEpochs.opened.clear()
    feed, net = Fed(), mr.Network()
    stream = net.stream("s", COLUMNS, time="ts", source=feed)
    net.query("all", stream)
    handle = net.run(on="local", background=True)
    try:
        sink = f"CREATE SINK o TO python OPTIONS (writer '{PLACE}', folder '{tmp_path / 'kept'}');"
        for number, begin in enumerate(
            [f"{sink} ADD QUERY q INTO o AS SELECT n", "ADD QUERY q INTO o AS SELECT n, -n AS less"]
        ):
            handle.add(f"{begin} FROM s")
            feed.tell(row(number + 1, n=number))
            received(handle, "s", number + 1)
            handle.drop("q")
            assert [each.closed for each in KeptEpochs.opened] == [True] * (number + 1)
    finally:
        handle.stop()
    assert kept(tmp_path / "kept") == [{"n": 0}, {"n": 1, "less": -1}]


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ("folder 'kept'", 'sink "o" has no writer'),
        ("writer 'no_such_module:Class'", 'the writer of sink "o" is not found at "no_such_module:Class"'),
        ("writer 'tests.unit.hosts.kept_epochs:NoWriter'", 'has no method "write"'),
        (f"writer '{PLACE}', run 'mine'", 'has an option "run"'),
    ],
)
def test_a_writer_that_cannot_be_used_is_refused_before_anything_runs(options: str, fact: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=fact):
        LocalRun(network(tmp_path, options), RunOptions("local", checkpoint=tmp_path / "state"))
    assert not (tmp_path / "state" / "current.json").exists()


# Staged epochs


def spec(folder: Path) -> WriterSpec:
    return WriterSpec("q", PLACE, (("folder", str(folder)), ("run", "r")), pa.schema([("n", pa.int64())]))


def staged(folder: Path, *tasks: list[int]) -> list[Path]:
    paths = [folder / f"{number}.arrow" for number in range(len(tasks))]
    for path, values in zip(paths, tasks, strict=True):
        stage_rows(path, spec(folder / "kept"), pa.table({"n": pa.array(values, pa.int64())}))
    return paths


def test_the_files_of_all_tasks_are_one_epoch(tmp_path: Path) -> None:
    KeptEpochs.opened.clear()
    writers, paths = OpenWriters(), staged(tmp_path, [1, 2], [], [3])
    assert {writer_of(read_arrow(path)) for path in paths} == {spec(tmp_path / "kept")}
    write_epoch(spec(tmp_path / "kept"), 7, paths, writers)
    assert calls(tmp_path / "kept") == [["r", "q", 7, [{"n": 1}, {"n": 2}, {"n": 3}]]]


def test_an_epoch_that_failed_can_be_written_again(tmp_path: Path) -> None:
    writers, paths = OpenWriters(), staged(tmp_path, [1])
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "fail_after").touch()
    with pytest.raises(RunError, match="failed in epoch 7"):
        write_epoch(spec(tmp_path / "kept"), 7, paths, writers)
    write_epoch(spec(tmp_path / "kept"), 7, paths, writers)
    assert kept(tmp_path / "kept") == [{"n": 1}]


def test_a_writer_stays_open_from_epoch_to_epoch_until_it_fails_or_is_left_out(tmp_path: Path) -> None:
    KeptEpochs.opened.clear()
    writers, given = OpenWriters(), spec(tmp_path / "kept")
    for epoch in (0, 1):
        write_epoch(given, epoch, staged(tmp_path, [epoch]), writers)
    assert len(KeptEpochs.opened) == 1
    (tmp_path / "kept" / "fail_before").touch()
    with pytest.raises(RunError):
        write_epoch(given, 2, staged(tmp_path, [2]), writers)
    write_epoch(given, 2, staged(tmp_path, [2]), writers)
    assert [writer.closed for writer in KeptEpochs.opened] == [True, False]
    writers.keep([])
    assert KeptEpochs.opened[-1].closed
