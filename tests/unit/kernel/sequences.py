"""What sequences must give, found row by row; checks of operators against it; rows in a short notation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns import hashing
from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.elements import ARRIVED, TIME, Batch, Element
from tests.unit.kernel.check_by_input import outputs, random_scripts, restarted, row_by_row
from tests.unit.kernel.check_operator import Make, Script, rows_of

Row = dict[str, Any]
Key = Callable[[Row], Any]
Search = Callable[[Script], list[str]]


@dataclass(frozen=True)
class Rules:
    """How rows of two ports follow each other."""

    keys: tuple[tuple[str, ...], tuple[str, ...]]
    within: int | None = None
    strict: bool = False
    outer: bool = False
    by_entry: tuple[bool, bool] = (True, True)

    def matches(self, row: Row, other: Row) -> bool:
        """Whether a row may be given with another."""
        pairs = [(row[one], other[two]) for one, two in zip(*self.keys, strict=True)]
        age = row[TIME] - other[TIME]
        near = self.within is None or age <= self.within
        return all(one is not None and one == two for one, two in pairs) and age >= int(self.strict) and near


def rows_in_order(script: Script, port: int, by_entry: bool) -> list[Row]:
    """The rows of a port by time, and then as they came or by contents."""
    tables = [pa.Table.from_batches([each.rows]) for at, each in script.steps if at == port and isinstance(each, Batch)]
    table = pa.concat_tables(tables).combine_chunks() if tables else None
    if table is None:
        return []
    names = [name for name in table.schema.names if name not in (TIME, ARRIVED)]
    ranks = list(zip(*(ordinals(table.column(name).combine_chunks()).tolist() for name in names), strict=True))
    rows = table.to_pylist()
    places = sorted(range(len(rows)), key=lambda place: (rows[place][TIME], place if by_entry else ranks[place]))
    return [rows[place] for place in places]


def recent(script: Script, schemas: Sequence[pa.Schema], rules: Rules) -> list[str]:
    """Each row of port 0 with the last one of port 1 that matches."""
    others = rows_in_order(script, 1, rules.by_entry[1])
    found = []
    for row in rows_in_order(script, 0, rules.by_entry[0]):
        matching = [other for other in others if rules.matches(row, other)]
        found.append((row, matching[-1] if matching else None))
    return _given(found, schemas, rules.outer)


def chronicle(script: Script, schemas: Sequence[pa.Schema], rules: Rules) -> list[str]:
    """Each row of port 0 with the first one of port 1 that matches and has not been used."""
    others = rows_in_order(script, 1, rules.by_entry[1])
    found = []
    for row in rows_in_order(script, 0, rules.by_entry[0]):
        place = next((place for place, other in enumerate(others) if rules.matches(row, other)), None)
        found.append((row, None if place is None else others.pop(place)))
    return _given(found, schemas, rules.outer)


def _given(found: Sequence[tuple[Row, Row | None]], schemas: Sequence[pa.Schema], outer: bool) -> list[str]:
    return sorted(repr(_side_by_side(row, other, schemas)) for row, other in found if outer or other is not None)


def _side_by_side(row: Row, other: Row | None, schemas: Sequence[pa.Schema]) -> Row:
    made = {name: row[name] for name in schemas[0].names}
    made |= {name: None if other is None else other[name] for name in schemas[1].names}
    made[TIME] = row[TIME]
    if ARRIVED in row:
        made[ARRIVED] = row[ARRIVED] if other is None else max(row[ARRIVED], other[ARRIVED])
    return made


def batch(names: str, *rows: tuple[Any, ...], until: int | None = None) -> Batch:
    """Rows of some columns, the last of which is the time."""
    columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
    return Batch(pa.RecordBatch.from_arrays(columns, names=[*names.split(), TIME]), until)


EXAMPLE = (pa.schema([("product", pa.string())]), pa.schema([("case", pa.string())]))
NO_KEYS: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def packed(elements: list[Element]) -> list[tuple[str, str | None]]:
    """Which product went into which case, in the order in which it became known."""
    rows = [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]
    return [(row["product"], row["case"]) for row in rows]


def check_whole_batches(make: Make, search: Search) -> None:
    """Check that an operator gives what the search gives."""
    for seed in range(6):
        script = random_scripts(seed, keys=(1, 3, 12)[seed % 3], batches=24)
        assert rows_of(outputs(make, script)) == search(script)


def check_single_rows(make: Make, search: Search) -> None:
    """Check it row by row, and with restarts."""
    for seed in range(3):
        script = random_scripts(seed, keys=(1, 3, 12)[seed % 3], batches=24)
        expected = search(script)
        assert rows_of(outputs(make, row_by_row(script))) == expected
        assert rows_of(restarted(make, script, seed, 0.5)) == expected


def check_shared_hashes(make: Make, search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check it where different keys have the same hash."""

    def alike(columns: Any, count: int | None = None) -> hashing.Words:
        return found(columns, count) % np.uint64(2)

    found = hashing.hashes
    monkeypatch.setattr(hashing, "hashes", alike)
    for seed in range(3):
        script = random_scripts(seed, keys=4, batches=24)
        expected = search(script)
        assert rows_of(outputs(make, script)) == expected
        assert rows_of(restarted(make, script, seed, 0.5)) == expected
