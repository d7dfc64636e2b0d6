"""What a reader yields, and how it becomes batches: rows in order, malformed rows counted or raised.

Rules:
- Data rows are numbered from 0 through a file, malformed ones included; a restart counts in these numbers.
- The rows before a malformed row are delivered before its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.errors import MalformedRow

Numbers = npt.NDArray[np.int64]

_LONGEST_VALUE = 120


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Good rows of a file, and how many malformed ones were left out among them.

    A batch stands for `len(rows) + malformed` data rows: add these up to know where to go on after a restart.
    """

    rows: pa.RecordBatch
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row is malformed: the place in the file, the column if one is to blame, the value, what is wrong."""

    place: str
    reason: str
    value: str
    column: str | None = None

    def error(self, path: Path) -> MalformedRow:
        """The error that tells the user."""
        column = "" if self.column is None else f', column "{self.column}"'
        value = self.value if len(self.value) <= _LONGEST_VALUE else self.value[:_LONGEST_VALUE] + "..."
        return MalformedRow(
            f'file "{path}", {self.place}{column}: "{value}" {self.reason}',
            hint="Mend the row, or leave out and count such rows with OPTIONS (on_malformed 'skip').",
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The data rows `start` to `stop` of a file: the good ones, their numbers, and why another is malformed."""

    rows: pa.RecordBatch
    start: int
    stop: int
    numbers: Numbers
    explain: Callable[[int], Fault]

    @property
    def malformed(self) -> int:
        """How many rows are left out."""
        return self.stop - self.start - int(self.rows.num_rows)

    def part(self, start: int, stop: int) -> Block:
        """The data rows from `start` up to `stop`, without a copy."""
        first, last = (int(each) for each in np.searchsorted(self.numbers, [start, stop]))
        rows, numbers = self.rows.slice(first, last - first), self.numbers[first:last]
        return Block(rows, start, stop, numbers, self.explain)

    def first_malformed(self) -> int:
        """The number of the first row left out; `stop` if there is none."""
        gaps = np.flatnonzero(self.numbers != np.arange(self.start, self.start + len(self.numbers)))
        return self.start + (int(gaps[0]) if len(gaps) else len(self.numbers))


def deliver(
    blocks: Iterator[Block], path: Path, *, skip_malformed: bool, batch_rows: int, skip_rows: int
) -> Iterator[FileBatch]:
    """The batches of a file from data row `skip_rows` on, of at most `batch_rows` data rows each."""
    for block in blocks:
        if block.stop <= skip_rows:
            continue
        block = block.part(max(block.start, skip_rows), block.stop)
        good_until = block.stop if skip_malformed else block.first_malformed()
        yield from _batches(block.part(block.start, good_until), batch_rows)
        if good_until < block.stop:
            raise block.explain(good_until).error(path)


def _batches(block: Block, batch_rows: int) -> Iterator[FileBatch]:
    for start in range(block.start, block.stop, batch_rows):
        part = block.part(start, min(start + batch_rows, block.stop))
        yield FileBatch(part.rows, part.malformed)
