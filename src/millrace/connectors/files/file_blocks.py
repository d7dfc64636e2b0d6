"""What the reader of a format yields: the good rows of a part of a file, and what is wrong with the others.

Data rows are numbered from 0 through a file, malformed ones included; a restart counts in these numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.errors import MalformedRow

Numbers = npt.NDArray[np.int64]

_LONGEST_VALUE = 120


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row is malformed: its place in the file, what is wrong, the value, and its column if it is in one."""

    place: str
    reason: str
    value: str
    column: str | None = None

    def error(self, path: Path) -> MalformedRow:
        """The error for the user."""
        column = "" if self.column is None else f', column "{self.column}"'
        value = self.value if len(self.value) <= _LONGEST_VALUE else self.value[:_LONGEST_VALUE] + "..."
        return MalformedRow(
            f'file "{path}", {self.place}{column}: "{value}" {self.reason}',
            hint="Mend the row, or leave out and count such rows with OPTIONS (on_malformed 'skip').",
        )


@dataclass(frozen=True, slots=True)
class FileBlock:
    """The data rows `start` to `stop` of a file: the good ones, their numbers, and why another is malformed."""

    rows: pa.RecordBatch
    start: int
    stop: int
    numbers: Numbers
    explain: Callable[[int], Fault]
    read: int = 0
    """How many bytes of the file hold these rows and all before them; 0 if that is not known."""

    @property
    def malformed(self) -> int:
        """How many rows are left out."""
        return self.stop - self.start - int(self.rows.num_rows)

    def part(self, start: int, stop: int) -> FileBlock:
        """The data rows from `start` up to `stop`, without a copy."""
        first, last = (int(each) for each in np.searchsorted(self.numbers, [start, stop]))
        rows, numbers = self.rows.slice(first, last - first), self.numbers[first:last]
        return FileBlock(rows, start, stop, numbers, self.explain, self.read)

    def first_malformed(self) -> int:
        """The number of the first row left out; `stop` if there is none."""
        gaps = np.flatnonzero(self.numbers != np.arange(self.start, self.start + len(self.numbers)))
        return self.start + (int(gaps[0]) if len(gaps) else len(self.numbers))
