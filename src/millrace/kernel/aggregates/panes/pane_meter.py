"""What rows take, and what the partials that are made of them take, as measured while an aggregate runs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millrace.kernel.aggregates.partials import Partials
from millrace.kernel.elements import concat_tables

_ENOUGH = 64
"""Rows that must have been measured before they decide something."""
_SAMPLE = 4096
"""Rows of which partials are made only to measure them."""
_GAIN = 2
"""How much smaller rows must be for partials to be given up; otherwise the aggregate would change to and fro."""


class PaneMeter:
    """Measures rows and partials since the last decision: rows as they come, or as their panes are complete."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Measure afresh."""
        self.numbers = [0, 0, 0, 0]

    @property
    def numbers(self) -> list[int]:
        """All that it has measured, to be kept."""
        return [self.rows, self.row_bytes, self.partials, self.partial_bytes]

    @numbers.setter
    def numbers(self, numbers: list[int]) -> None:
        self.rows, self.row_bytes, self.partials, self.partial_bytes = numbers

    def saw_rows(self, rows: Sequence[pa.Table | pa.RecordBatch]) -> None:
        """Note rows."""
        self.rows += sum(each.num_rows for each in rows)
        self.row_bytes += sum(int(each.nbytes) for each in rows)

    def saw_partials(self, made: Sequence[pa.Table], weight: float = 1.0) -> None:
        """Note partials, each for `weight` of its kind."""
        self.partials += sum(each.num_rows for each in made)
        self.partial_bytes += round(weight * sum(int(each.nbytes) for each in made))

    def saw_both(self, rows: list[pa.Table], partials: Partials) -> None:
        """Note rows, and what their partials would take."""
        if rows:
            self.saw_rows(rows)
            sample = concat_tables(rows).slice(0, _SAMPLE)
            whole = sum(each.num_rows for each in rows)
            self.saw_partials([partials.of_rows(sample.to_batches())], whole / sample.num_rows)

    def smaller_as_rows(self, buffered: bool) -> bool | None:
        """True if it is better to keep rows, given what is kept now; None while too little has been measured."""
        if self.rows < _ENOUGH or not self.partials:
            return None
        return self.row_bytes * (1 if buffered else _GAIN) < self.partial_bytes
