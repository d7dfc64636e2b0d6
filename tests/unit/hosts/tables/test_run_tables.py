from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.errors import MillraceError
from millrace.hosts.tables import table_files
from millrace.hosts.tables.run_tables import RunTables
from millrace.hosts.tables.table_reader import read_table
from millrace.kernel.joins.tables.table_join import TableJoin
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical

STREAM = "CREATE STREAM c (id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS FROM iterable;"
QUERY = "CREATE QUERY q AS SELECT c.ts, u.name FROM c JOIN users u ON c.id = u.id"


def network(path: object, *, refresh: str = "", columns: str = "id BIGINT PRIMARY KEY, name STRING") -> QueryNetwork:
    table = f"CREATE TABLE users ({columns}) FROM csv OPTIONS (path '{path}') {refresh};"
    return parse_network(f"{STREAM}\n{table}\n{QUERY};")


def run_tables(folder: Path | None, saved: dict[str, Any] | None = None, said: list[str] | None = None) -> RunTables:
    return RunTables(folder, None, saved or {}, (said if said is not None else []).append)


def points(greatest: int, bound: int) -> dict[str, Any]:
    return {"c": {"greatest": greatest, "bound": bound, "sequence": 0, "outlets": {}}}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("id,name\n1,a\n2,b\n1,c\n", 'table "users" has 2 rows with the primary key id = 1'),
        ("id,name\n1,a\n,b\n", 'table "users" has a row without "id", which is part of its primary key'),
        ("id,name\n1,a\nx,b\n", 'table "users" cannot be read: '),
        ("id\n1\n", 'table "users" cannot be read: '),
        (None, 'table "users" cannot be read: '),
    ],
    ids=["duplicate", "null", "wrong type", "lacks a column", "missing"],
)
def test_a_table_that_breaks_its_declaration_is_refused_by_name(tmp_path: Path, text: str | None, fact: str) -> None:
    if text is not None:
        (tmp_path / "users.csv").write_text(text)
    [table] = network(tmp_path / "users.csv").tables()
    with pytest.raises(MillraceError) as raised:
        read_table(table, {})
    assert raised.value.fact.startswith(fact), raised.value.fact
    assert raised.value.hint and 'stream "users"' not in str(raised.value)


def test_a_version_is_in_force_after_all_that_was_seen_and_is_dropped_when_no_row_can_meet_it(tmp_path: Path) -> None:
    source, folder = tmp_path / "users.csv", tmp_path / "checkpoint"
    source.write_text("id,name\n1,a\n")
    known, tables = network(source), run_tables(folder)
    tables.open(known, 0)
    [first] = tables.saved()["users"]["versions"]
    assert first["since"] == {} and first["rows"] == 1
    source.write_text("id,name\n1,b\n")
    assert tables.put(tables.read("users", 1), known, points(greatest=20, bound=15))
    assert [each["since"] for each in tables.saved()["users"]["versions"]] == [{}, {"c": 21}]
    # The same contents are no version of their own.
    assert not tables.put(tables.read("users", 2), known, points(greatest=30, bound=25))
    source.write_text("id,name\n1,c\n")
    # A bound may be ahead of all rows: results of windows have been made up to it.
    assert tables.put(tables.read("users", 3), known, points(greatest=40, bound=60))
    saved = tables.saved()["users"]
    assert [each["since"] for each in saved["versions"]] == [{"c": 60}]
    files = {each.name for each in (folder / "tables").iterdir()}
    assert len(files) == 3 and len(saved["dropped"]) == 2
    tables.settled()
    source.write_text("id,name\n1,d\n")
    assert tables.put(tables.read("users", 4), known, points(greatest=70, bound=70))
    tables.settled()
    assert first["file"] not in {each.name for each in (folder / "tables").iterdir()}


def test_a_changed_file_does_not_change_what_a_checkpoint_has(tmp_path: Path) -> None:
    source, folder = tmp_path / "users.csv", tmp_path / "checkpoint"
    source.write_text("id,name\n1,a\n")
    known, tables = network(source), run_tables(folder)
    tables.open(known, 0)
    source.unlink()
    kept = [each.name for each in (folder / "tables").iterdir()]
    (folder / "tables" / "users-left-by-a-kill.arrow").touch()
    again = run_tables(folder, tables.saved())
    again.open(known, 0)
    assert [each.name for each in (folder / "tables").iterdir()] == kept
    assert again.saved() == tables.saved()
    with pytest.raises(MillraceError, match="cannot be read"):
        run_tables(tmp_path / "other").open(known, 0)


def test_a_table_with_other_columns_is_read_anew(tmp_path: Path) -> None:
    source, folder = tmp_path / "users.csv", tmp_path / "checkpoint"
    source.write_text("id,name,age\n1,a,7\n")
    tables = run_tables(folder)
    tables.open(network(source), 0)
    wider = network(source, columns="id BIGINT PRIMARY KEY, name STRING, age INT")
    again = run_tables(folder, tables.saved())
    assert not again.fit(wider)
    again.open(wider, 0)
    assert again.fit(wider) and again.saved()["users"]["dropped"]


def test_a_refresh_that_fails_leaves_the_version_and_says_so(tmp_path: Path) -> None:
    source, said = tmp_path / "users.csv", list[str]()
    source.write_text("id,name\n1,a\n")
    tables = run_tables(None, said=said)
    tables.open(network(source, refresh="REFRESH EVERY INTERVAL 10 SECONDS"), 0)
    assert tables.next_due() == 10_000_000 and tables.take(9_999_999) == []
    source.write_text("id,name\n1,a\n1,b\n")
    assert tables.take(10_000_000) == []
    assert said == ['table "users" has 2 rows with the primary key id = 1; the version before stays in force']
    source.write_text("id,name\n1,b\n")
    assert tables.take(19_999_999) == []
    assert [fresh.record.rows for fresh in tables.take(20_000_000)] == [1]


def test_a_process_loads_a_version_once_and_lets_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Path] = []
    read = table_files.read_arrow

    def counted(path: Path, told: str, *, mapped: bool) -> pa.Table:
        loads.append(path)
        return read(path, told, mapped=mapped)

    monkeypatch.setattr(table_files, "read_arrow", counted)
    source = tmp_path / "users.parquet"
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), source)
    table = f"CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING) FROM parquet OPTIONS (path '{source}');"
    other = "CREATE QUERY r AS SELECT c.ts, u.name, u.id FROM c LEFT JOIN users u ON c.id = u.id;"
    known = parse_network(f"{STREAM}\n{table}\n{QUERY};\n{other}")
    tables = run_tables(tmp_path / "checkpoint")
    tables.open(known, 0)
    for _ in range(3):
        graph = physical(known).whole()
        tables.equip(graph, ())
        joins = [node.operator for node in graph.nodes.values() if isinstance(node.operator, TableJoin)]
        assert joins and [each._versions[0].contents.rows.num_rows for each in joins] == [2] * len(joins)
    assert len(loads) == 1
    pq.write_table(pa.table({"id": [1], "name": ["c"]}), source)
    assert tables.put(tables.read("users", 1), known, points(greatest=1, bound=1))
    tables.equip(physical(known).whole(), ())
    kept = table_files._LOADED[f"{tmp_path}/checkpoint/tables/users"]
    assert set(kept) == {each["file"] for each in tables.saved()["users"]["versions"]}
