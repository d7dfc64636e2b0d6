"""What the reader of a format yields: the good rows of a part of a file, and what is wrong with the others.

Data rows are numbered from 0 through a file, malformed ones included; a restart counts in these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.errors import MalformedRow

Numbers = npt.NDArray[np.int64]
Texts = tuple[list[str], list[int]]
"""The text of rows, and the line on which each begins."""

_LONGEST_VALUE = 120


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row is malformed: its place in the file, what is wrong, the value, and its column if it is in one."""

    place: str
    reason: str
    value: str
    column: str | None = None

    @property
    def told(self) -> str:
        """What is wrong, without the value: the same for all rows with this fault."""
        return self.reason if self.column is None else f'column "{self.column}" {self.reason}'

    def error(self, where: str) -> MalformedRow:
        """The error for the user, of a row in a file or a partition."""
        column = "" if self.column is None else f', column "{self.column}"'
        value = self.value if len(self.value) <= _LONGEST_VALUE else self.value[:_LONGEST_VALUE] + "..."
        return MalformedRow(
            f'{where}, {self.place}{column}: "{value}" {self.reason}',
            hint="Mend the row, or leave out and count such rows with OPTIONS (on_malformed 'skip').",
        )


@dataclass(frozen=True, slots=True)
class FileBlock:
    """The data rows `start` to `stop` of a file: the good ones, their numbers, and why another is malformed.

    `reasons` says for rows by their numbers what is wrong with each, without its value; `texts` how the file has them.
    """

    rows: pa.RecordBatch
    start: int
    stop: int
    numbers: Numbers
    explain: Callable[[int], Fault]
    reasons: Callable[[Numbers], list[str]]
    texts: Callable[[Numbers], Texts]
    read: int = 0
    """How many bytes of the file hold these rows and all before them; 0 if that is not known."""

    @property
    def malformed(self) -> int:
        """How many rows are left out."""
        return self.stop - self.start - int(self.rows.num_rows)

    def part(self, start: int, stop: int) -> FileBlock:
        """The data rows from `start` up to `stop`, without a copy."""
        if (start, stop) == (self.start, self.stop):
            return self
        first, last = (int(each) for each in np.searchsorted(self.numbers, [start, stop]))
        rows, numbers = self.rows.slice(first, last - first), self.numbers[first:last]
        return replace(self, rows=rows, start=start, stop=stop, numbers=numbers)

    def left_out(self) -> Numbers:
        """The numbers of the malformed rows."""
        return np.setdiff1d(np.arange(self.start, self.stop), self.numbers, assume_unique=True)

    def first_malformed(self) -> int:
        """The number of the first row left out; `stop` if there is none."""
        gaps = np.flatnonzero(self.numbers != np.arange(self.start, self.start + len(self.numbers)))
        return self.start + (int(gaps[0]) if len(gaps) else len(self.numbers))


def reasons_of(wanted: Numbers, known: Mapping[int, str], unfit: Callable[[Numbers], list[str]]) -> list[str]:
    """What is wrong with rows: what is known of them, and for the others what `unfit` says of all at once."""
    others = np.setdiff1d(wanted, np.fromiter(known, np.int64, len(known)), assume_unique=True)
    found = {**known, **dict(zip(others.tolist(), unfit(others), strict=True))}
    return [found[number] for number in wanted.tolist()]
