"""Times inside structs: many events have theirs in an envelope. A stream has such a time as a column computed of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.survey.column_kinds import ColumnKind, column_kind
from millrace.survey.time_choice import TimeChoice, time_choices

Values = Any  # pa.ChunkedArray

_READERS = {
    "iso": "CAST({} AS TIMESTAMP)",
    "epoch_seconds": "timestamp_seconds({})",
    "epoch_millis": "timestamp_millis({})",
    "epoch_micros": "timestamp_micros({})",
    "epoch_nanos": "timestamp_micros({} div 1000)",
}


def nested_times(columns: Mapping[str, Values], kinds: Sequence[ColumnKind]) -> list[TimeChoice]:
    """The times inside the structs of the columns, the best first, under names that no column has."""
    leaves = {
        _free("_".join(path), columns): (path, leaf)
        for kind in kinds
        for path, leaf in _leaves((kind.name,), columns[kind.name])
    }
    found = {name: leaf for name, (_, leaf) in leaves.items()}
    # Their types are declared inside those of structs: numbers in text stay text.
    own = [column_kind(name, leaf, null_words=(), settled=True) for name, leaf in found.items()]
    return [
        replace(choice, path=leaves[choice.column][0], reader=_reader(choice.format))
        for choice in time_choices(found, own)
        if not choice.unfit
    ]


def _leaves(path: tuple[str, ...], column: Values) -> Iterator[tuple[tuple[str, ...], Values]]:
    """The columns inside a struct that are none themselves, each with the names that lead to it."""
    if not pa.types.is_struct(column.type):
        return
    for part in column.type:
        inner = (*path, part.name), pc.struct_field(column, part.name)
        if pa.types.is_struct(part.type):
            yield from _leaves(*inner)
        elif not pa.types.is_nested(part.type):
            yield inner


def _free(name: str, taken: Mapping[str, Values]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def _reader(format: str) -> str:
    """The expression that makes a time of a value of a format, with a place for the value."""
    return _READERS.get(format) or f"to_timestamp({{}}, '{format.replace(chr(39), chr(39) * 2)}')"
