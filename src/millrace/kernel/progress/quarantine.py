"""Rows that are set aside before they enter a stream, with the reason and the place of each.

Rules:
- A row is set aside because its source could not read it, because it has no time, or because it is from the future.
- The text and the place of a row are looked up only where they are wanted: for a stream that reads the rows set aside,
  and for a few examples. A source that knows them gives a `Locate`; without one the text of a row is its columns.
- What is kept per stream is bounded: some reasons, each with its count and some examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.integers import Integers
from millrace.kernel.columns.nested.json_functions import as_json
from millrace.kernel.elements import without_reserved
from millrace.kernel.metrics import AsideRow, AsideRows

PLACES = pa.schema([("raw", pa.string()), ("file", pa.string()), ("line", pa.int64())])
"""The text of a row as its source has it, and where it stands there."""
QUARANTINE = PLACES.append(pa.field("reason", pa.string()))
"""The columns of rows that were set aside."""

Locate = Callable[[Integers], pa.RecordBatch]
"""Rows by their positions, as `PLACES`."""

_REASONS, _EXAMPLES, _SHOWN = 20, 3, 200
_OTHERS = "other reasons"


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Rows that their source could not read: why, and what finds their text."""

    reasons: pa.Array
    locate: Locate

    def __len__(self) -> int:
        return len(self.reasons)


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows of a batch that were set aside for one reason, by their positions."""

    reason: str
    positions: Integers


def as_unread(asides: Iterable[Aside], rows: pa.RecordBatch, locate: Locate | None) -> UnreadRows:
    """The rows of a batch that were set aside."""
    found = list(asides)
    positions = np.concatenate([each.positions for each in found])
    reasons = pa.array(np.repeat([each.reason for each in found], [len(each.positions) for each in found]), pa.string())
    find = locate or (lambda wanted: _placed_by_columns(rows, wanted))
    return UnreadRows(reasons, lambda wanted: find(positions[wanted]))


def quarantine_rows(unread: UnreadRows) -> pa.RecordBatch:
    """All of the rows, with their places and reasons."""
    places = unread.locate(np.arange(len(unread)))
    return pa.RecordBatch.from_arrays([*places.columns, unread.reasons], schema=QUARANTINE)


def places(raw: Iterable[str | None], file: str | None, lines: Iterable[int | None]) -> pa.RecordBatch:
    """Rows of one file as `PLACES`."""
    texts = pa.array(raw, pa.string())
    names = pa.array([file], pa.string()).take(pa.array(np.zeros(len(texts), np.int64)))
    return pa.RecordBatch.from_arrays([texts, names, pa.array(lines, pa.int64())], schema=PLACES)


def _placed_by_columns(rows: pa.RecordBatch, wanted: Integers) -> pa.RecordBatch:
    texts = row_texts(without_reserved(rows).take(pa.array(wanted)))
    return places(texts, None, [None] * len(wanted))


def row_texts(rows: pa.RecordBatch) -> list[str]:
    """Each row as a JSON object."""
    found: list[str] = as_json(rows.to_struct_array()).to_pylist()
    return found


class AsideBook:
    """The reasons for which rows of a stream were set aside, with their counts and examples."""

    def __init__(self) -> None:
        self._reasons: dict[str, AsideRows] = {}

    def note(self, unread: UnreadRows) -> None:
        """Count rows, and keep some of them as examples."""
        for counted in pc.value_counts(unread.reasons).to_pylist():
            reason, count = counted["values"], counted["counts"]
            room = _EXAMPLES - len(self._known(reason).examples)
            examples: list[AsideRow] = []
            if room > 0:
                first = pc.indices_nonzero(pc.equal(unread.reasons, reason))[:room]
                examples = [_shown(**each) for each in unread.locate(first.to_numpy()).to_pylist()]
            self._add(reason, AsideRows(count, tuple(examples)))

    def add(self, saved: Mapping[str, Any]) -> None:
        """Count what another book has saved."""
        for reason, (count, examples) in saved.items():
            self._add(reason, AsideRows(count, tuple(AsideRow(*each) for each in examples)))

    def _known(self, reason: str) -> AsideRows:
        return self._reasons.get(reason if self._has_room(reason) else _OTHERS, AsideRows(0))

    def _has_room(self, reason: str) -> bool:
        return reason in self._reasons or len(self._reasons) < _REASONS

    def _add(self, reason: str, more: AsideRows) -> None:
        known = self._known(reason)
        examples = (*known.examples, *more.examples)[:_EXAMPLES]
        self._reasons[reason if self._has_room(reason) else _OTHERS] = AsideRows(known.count + more.count, examples)

    def reasons(self) -> dict[str, AsideRows]:
        """What is known of each reason."""
        return dict(self._reasons)

    def save(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {
            reason: [each.count, [[row.raw, row.file, row.line] for row in each.examples]]
            for reason, each in self._reasons.items()
        }


def reasons_of(saved: Mapping[str, Any]) -> dict[str, AsideRows]:
    """What a book has saved, as metrics have it."""
    return merged(saved).reasons()


def merged(*saved: Mapping[str, Any]) -> AsideBook:
    """One book of several, in their order."""
    book = AsideBook()
    for each in saved:
        book.add(each)
    return book


def _shown(raw: str | None, file: str | None, line: int | None) -> AsideRow:
    return AsideRow(raw if raw is None or len(raw) <= _SHOWN else f"{raw[:_SHOWN]}...", file, line)
