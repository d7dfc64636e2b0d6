"""A local run that goes on from a checkpoint with another file: all of the change is made, or nothing is touched."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from millrace.errors import CheckpointError, RequestError
from millrace.hosts.checkpoint.checkpoint import pending_change
from millrace.hosts.checkpoint.durable_files import read_record, write_record
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Ending
from millrace.hosts.run_options import RunOptions
from millrace.language import bind_changes, parse_network, read_file
from tests.unit.hosts.fed import row

STREAM = "CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;\n"
OTHER = STREAM.replace("STREAM s", "STREAM r")
COUNTED = "SELECT count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts]"


def query(name: str, select: str, folder: Path | None = None) -> str:
    if folder is None:
        return f"CREATE QUERY {name} AS {select};\n"
    return f"CREATE SINK {name}_o TO csv OPTIONS (path '{folder}'); CREATE QUERY {name} INTO {name}_o AS {select};\n"


def asked(sql: str) -> LiveChanges:
    return LiveChanges(parse_network(sql), sql, bind_changes, read_file)


def opened(
    sql: str, checkpoint: Path, *feeds: list[dict[str, Any]], ending: Ending = "available", **more: Any
) -> LocalRun:
    changes = asked(sql)
    return LocalRun(
        changes.network, RunOptions("local", ending, checkpoint=checkpoint), changes=changes, feeds={"s": feeds, **more}
    )


def results(run: LocalRun, name: str) -> list[Any]:
    return [next(reversed(row.values())) for each in run.memory[name] for row in each.to_pylist()]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


FIRST = [row(1, k="a", n=1), row(4, k="b", n=2)]
SECOND = [row(6, k="a", n=3), row(12, k="a", n=4)]
THIRD = [row(15, k="b", n=5), row(31, k="b", n=6)]


def begun(sql: str, checkpoint: Path) -> None:
    opened(sql, checkpoint, FIRST).run()


def test_the_same_file_goes_on_as_it_was(tmp_path: Path) -> None:
    begun(STREAM + query("q", COUNTED), tmp_path)
    run = opened(STREAM + query("q", COUNTED), tmp_path, FIRST, SECOND)
    assert run.changes.evolution is None
    run.run()
    assert results(run, "q") == [3]
    assert len(run.changes.history) == 0


def test_a_window_that_is_open_outlives_a_new_having(tmp_path: Path) -> None:
    begun(STREAM + query("q", COUNTED), tmp_path)
    run = opened(STREAM + query("q", f"{COUNTED} HAVING count(*) > 2"), tmp_path, FIRST, SECOND, THIRD, ending="end")
    run.run()
    assert results(run, "q") == [3]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            STREAM.replace("ORDERED", "ORDERED PARTITIONED BY (k)") + query("q", COUNTED),
            "it was without PARTITIONED BY",
        ),
        (STREAM.replace("n INT", "n STRING") + query("q", COUNTED), 'the type of its column "n" has changed'),
        (STREAM + query("q", COUNTED) + query("p", COUNTED, Path("full")), "holds results already"),
        (STREAM + query("q", COUNTED) + query("p", COUNTED, Path("kept")), '"kept" and "p" write to one folder'),
    ],
)
def test_a_refusal_leaves_the_checkpoint_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = STREAM + query("q", COUNTED) + query("kept", "SELECT n FROM s", Path("kept"))
    sql += "" if "kept" in sql else query("kept", "SELECT n FROM s", Path("kept"))
    begun(before, tmp_path / "state")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "part-00000001.csv").write_text("n\n1\n")
    found = contents(tmp_path)
    with pytest.raises(RequestError, match=reason):
        opened(sql, tmp_path / "state", FIRST, SECOND)
    assert contents(tmp_path) == found
    run = opened(before, tmp_path / "state", FIRST, SECOND)
    run.run()
    assert results(run, "q") == [3]


def test_a_run_that_ends_before_its_first_commit_has_changed_nothing(tmp_path: Path) -> None:
    begun(STREAM + query("q", COUNTED), tmp_path)
    found = contents(tmp_path)
    opened(STREAM + query("p", "SELECT n FROM s"), tmp_path, FIRST)._control.close()
    assert contents(tmp_path) == found


def test_the_change_is_committed_before_anything_is_read(tmp_path: Path) -> None:
    def failing() -> Iterator[list[dict[str, Any]]]:
        yield FIRST
        raise OSError("gone")

    begun(STREAM + query("q", COUNTED), tmp_path)
    changes = asked(STREAM + query("p", COUNTED))
    run = LocalRun(changes.network, RunOptions("local", checkpoint=tmp_path), changes=changes, feeds={"s": failing()})
    with pytest.raises(OSError, match="gone"):
        run.run()
    (entry,) = json.loads((tmp_path / "current.json").read_text())["changes"]["history"]
    assert entry["file"] == STREAM + query("p", COUNTED)
    assert pending_change(tmp_path, asked(STREAM + query("p", COUNTED))) is None


def test_what_would_become_of_it_can_be_asked_without_touching_it(tmp_path: Path) -> None:
    begun(STREAM + query("q", COUNTED), tmp_path / "state")
    found = contents(tmp_path)
    evolution = pending_change(tmp_path / "state", asked(STREAM + query("p", "SELECT n FROM s")))
    assert evolution is not None
    assert [(each.name, each.became) for each in evolution.queries] == [("p", "started"), ("q", "dropped")]
    assert contents(tmp_path) == found
    fresh = pending_change(tmp_path / "none", asked(STREAM + query("p", "SELECT n FROM s")))
    assert fresh is not None and fresh.queries[0].became == "started"
    assert not (tmp_path / "none").exists()


def test_state_of_queries_that_left_is_removed(tmp_path: Path) -> None:
    begun(STREAM + query("q", COUNTED) + query("p", "SELECT n FROM s"), tmp_path)
    assert list(tmp_path.glob("window_aggregate#*.arrow"))
    opened(STREAM + query("p", "SELECT n FROM s"), tmp_path, FIRST).run()
    assert not list(tmp_path.glob("window_aggregate#*.arrow"))


def test_queries_that_were_asked_for_stay_when_the_file_changes(tmp_path: Path) -> None:
    text = STREAM + OTHER + query("q", COUNTED)
    run = opened(text, tmp_path, FIRST, r=[])
    run.changes.carry_out(
        f"CREATE SINK o TO csv OPTIONS (path '{tmp_path}/o'); ADD QUERY p INTO o AS SELECT n FROM s", run
    )
    run.changes.carry_out("ADD QUERY w AS SELECT n FROM r", run)
    run.run()
    again = opened(STREAM + query("q", f"{COUNTED} HAVING count(*) > 0"), tmp_path, FIRST, SECOND, r=[])
    assert [each.name for each in again.changes.network.queries] == ["q", "p", "w"]
    again.changes.carry_out("DROP QUERY w; ADD QUERY v AS SELECT n FROM s", again)
    again.run()
    # A third run makes all of it again, in its order.
    last = opened(STREAM + query("q", f"{COUNTED} HAVING count(*) > 0"), tmp_path, FIRST, SECOND, THIRD)
    assert last.changes.network == again.changes.network
    assert [entry.points is None for entry in last.changes.history] == [True, True, False, True]
    last.run()
    assert results(last, "v") == [5, 6]


def test_a_stream_that_comes_back_is_read_from_its_beginning(tmp_path: Path) -> None:
    both = STREAM + OTHER + query("q", COUNTED) + query("p", "SELECT n FROM r")
    opened(both, tmp_path, FIRST, r=[FIRST]).run()
    opened(STREAM + query("q", COUNTED), tmp_path, FIRST, SECOND).run()
    run = opened(both, tmp_path, FIRST, SECOND, r=[FIRST, SECOND])
    assert run.changes.evolution is not None and run.changes.evolution.streams["added"] == ["r"]
    run.run()
    assert results(run, "p") == [1, 2, 3, 4]


def test_a_query_by_another_outlet_joins_a_stream_that_others_read(tmp_path: Path) -> None:
    begun(STREAM + query("q", COUNTED), tmp_path)
    by_rows = query("p", "SELECT sum(n) AS n FROM s [ROWS 2 SLIDE 2]")
    run = opened(STREAM + query("q", COUNTED) + by_rows, tmp_path, FIRST, SECOND, THIRD)
    run.run()
    assert (results(run, "p"), results(run, "q")) == ([7, 11], [3, 2])


def test_results_go_on_in_their_folders(tmp_path: Path) -> None:
    old, new, state = tmp_path / "old", tmp_path / "new", tmp_path / "state"
    begun(STREAM + query("a", "SELECT n FROM s", old / "a") + query("b", "SELECT n FROM s", old / "b"), state)
    # One is changed, one has another name.
    changed = query("a", "SELECT n * 10 AS n FROM s", old / "a") + query("c", "SELECT n FROM s", old / "b")
    opened(STREAM + changed, state, FIRST, SECOND).run()
    # One has another sink.
    opened(STREAM + changed.replace(str(old / "a"), str(new)), state, FIRST, SECOND, THIRD).run()
    assert [written(old / "a"), written(old / "b"), written(new)] == [
        ["1", "2", "30", "40"],
        ["1", "2", "3", "4", "5", "6"],
        ["50", "60"],
    ]


def written(folder: Path) -> list[str]:
    return [each["n"] for path in sorted(folder.glob("part-*")) for each in csv.DictReader(path.open())]


def test_operators_of_other_names_are_those_of_another_version(tmp_path: Path) -> None:
    begun(STREAM + query("q", COUNTED), tmp_path)
    path = tmp_path / "current.json"
    record = json.loads(json.dumps(read_record(path)).replace('"project#', '"project#f'))
    write_record(path, {**record, "segments": []})
    with pytest.raises(CheckpointError, match="made by another version"):
        opened(STREAM + query("q", COUNTED), tmp_path, FIRST)


def test_a_handle_says_what_became_of_the_queries(tmp_path: Path) -> None:
    def handle(select: str) -> mr.Handle:
        net = mr.Network()
        net.stream("s", "k STRING, n INT, ts TIMESTAMP", time="ts", source=[FIRST])
        net.sql(f"CREATE QUERY q AS {select}")
        return net.run(on="local", until="available", checkpoint=tmp_path)

    assert handle(COUNTED).evolution is None
    evolution = handle(f"{COUNTED} HAVING count(*) > 1").evolution
    assert evolution is not None
    assert evolution.lines()[0].startswith("q changed: window_aggregate#")
