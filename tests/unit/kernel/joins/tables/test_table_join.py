from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.columns import hashing
from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.elements import TIME, Batch
from millrace.kernel.joins.tables.table_index import TableIndex
from millrace.kernel.joins.tables.table_join import TableJoin, TableJoinKind
from millrace.kernel.joins.tables.table_versions import TableContents, TableVersion, as_stored
from tests.unit.kernel.check_operator import check_operator

Row = dict[str, Any]
COLUMNS = pa.schema([("id", pa.string()), ("name", pa.string()), ("least", pa.int64())])


def joined(kind: TableJoinKind, tables: list[tuple[int, list[Row]]], *, above: int | None = None) -> TableJoin:
    """A join on k = id and n >= least; `above` chooses among rows of the table."""
    condition = Call("and", (Call("=", (Column("k"), Column("t.id"))), Call(">=", (Column("n"), Column("t.least")))))
    if kind in ("semi", "anti"):
        condition = Call("=", (Column("k"), Column("t.id")))
    where = None if above is None else Call(">", (Column("least"), Literal(above, pa.int64())))
    names = [(f"t.{name}", name) for name in COLUMNS.names]
    found = TableJoin("t", ["s"], kind, [(Column("k"), "id")], names, condition, where)
    found.use([TableVersion(contents(rows), {"s": start}) for start, rows in tables])
    return found


def contents(rows: list[Row], key: tuple[str, ...] = ()) -> TableContents:
    return TableContents(lambda: as_stored(pa.Table.from_pylist(rows, COLUMNS), key), key)


def rows_of(elements: list[Any]) -> list[Row]:
    return [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]


def expected(kind: str, tables: list[tuple[int, list[Row]]], rows: list[Row], above: int | None) -> list[Row]:
    """A loop over rows and the rows of the version of each: obviously right."""
    found: list[Row] = []
    for row in rows:
        (_, version) = [each for place, each in enumerate(tables) if place == 0 or each[0] <= row[TIME]][-1]
        version = [each for each in version if above is None or (each["least"] is not None and each["least"] > above)]
        if kind in ("semi", "anti"):
            ids = [each["id"] for each in version]
            known = row["k"] in ids if row["k"] is not None else None
            known = False if not ids else known
            unknown = known is None or (not known and None in ids)
            if (kind == "semi" and known) or (kind == "anti" and not unknown and not known):
                found.append(row)
            continue
        same = [each for each in version if row["k"] is not None and each["id"] == row["k"]]
        same = [each for each in same if None not in (row["n"], each["least"]) and row["n"] >= each["least"]]
        plain, reserved = {"k": row["k"], "n": row["n"]}, {TIME: row[TIME]}
        found += [{**plain, **{f"t.{name}": each[name] for name in COLUMNS.names}, **reserved} for each in same]
        if kind == "left" and not same:
            found.append({**plain, **{f"t.{name}": None for name in COLUMNS.names}, **reserved})
    return found


def canonical(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


keys = st.sampled_from([None, "a", "b", "c", "d"])
table_rows = st.lists(
    st.fixed_dictionaries({"id": keys, "name": st.sampled_from("xyz"), "least": st.none() | st.integers(0, 3)}),
    max_size=6,
)
stream_rows = st.lists(
    st.fixed_dictionaries({"k": keys, "n": st.none() | st.integers(0, 3), TIME: st.integers(0, 30)}), max_size=12
)
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), (TIME, pa.int64())])


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@given(
    versions=st.lists(table_rows, min_size=1, max_size=3),
    rows=stream_rows,
    cut=st.integers(0, 12),
    above=st.none() | st.integers(0, 2),
)
def test_each_row_meets_the_rows_of_its_version_however_rows_are_batched(
    kind: TableJoinKind, versions: list[list[Row]], rows: list[Row], cut: int, above: int | None
) -> None:
    tables = [(10 * place - (10**6 if place == 0 else 0), each) for place, each in enumerate(versions)]
    operator = joined(kind, tables, above=above)
    pieces = [piece for piece in (rows[:cut], rows[cut:]) if piece]
    batches = [Batch(pa.RecordBatch.from_pylist(piece, SCHEMA)) for piece in pieces]
    found = rows_of([each for batch in batches for each in operator.on_batch(0, batch)])
    assert canonical(found) == canonical(expected(kind, tables, rows, above))
    # Rows keep their order, which those of equal time have nothing else to be told by.
    owners = [(row["k"], row["n"], row[TIME]) for row in found]
    places = iter([(row["k"], row["n"], row[TIME]) for row in rows])
    before: Any = None
    for owner in owners:
        if owner != before:
            assert owner in places
        before = owner


def test_values_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def same(columns: list[pa.Array], count: int | None = None) -> hashing.Words:
        return np.zeros(len(columns[0]), np.uint64)

    monkeypatch.setattr("millrace.kernel.joins.tables.table_index.hashes", same)
    operator = joined("inner", [(0, [{"id": "a", "name": "x", "least": 0}, {"id": "b", "name": "y", "least": 0}])])
    batch = Batch(pa.RecordBatch.from_pylist([{"k": "b", "n": 1, TIME: 1}, {"k": "c", "n": 1, TIME: 2}], SCHEMA))
    assert [row["t.name"] for row in rows_of(list(operator.on_batch(0, batch)))] == ["y"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
def test_it_keeps_what_every_operator_promises(kind: TableJoinKind) -> None:
    rows = [{"id": f"k{each % 3}", "name": str(each), "least": each % 4} for each in range(8)]
    check_operator(lambda: joined(kind, [(-(10**6), rows), (40, rows[:5])]))


def test_an_index_of_the_primary_key_is_the_table_as_it_is_stored() -> None:
    rows = [{"id": str(each), "name": "x", "least": 0} for each in range(100)]
    known = contents(rows, ("id",))
    index = known.index(["id"], None)
    assert index.rows is known.rows and known.index(["id"], None) is index
    assert index.nbytes == 100 * 8
    found, places = index.candidates([pa.array(["7", "none", "8"])])
    assert found.tolist() == [0, 2]
    assert index.rows["id"].take(pa.array(places)).to_pylist() == ["7", "8"]


def test_an_empty_table_has_no_candidates() -> None:
    index = TableIndex.of(pa.Table.from_pylist([], COLUMNS), ["id"])
    assert [each.tolist() for each in index.candidates([pa.array(["a"])])] == [[], []]
