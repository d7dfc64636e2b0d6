"""A number for each partition of a stream, from 0 on, as they first turn up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.comparison import canonical
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.hashing import hashes_of
from millrace.kernel.elements import concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns

_NUMBER = "__number"

Numbers = npt.NDArray[np.int64]


class Partitions:
    """The partitions by some columns, null being a value; all rows are one if there is no column.

    What is saved grows with new partitions only.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.count = 0 if names else 1
        self._known = KeyedRuns()

    @property
    def nbytes(self) -> int:
        """The memory of what is known of them."""
        return self._known.nbytes

    def numbers(self, rows: pa.RecordBatch) -> Numbers:
        """The number of each row's partition."""
        if not self.names:
            return np.zeros(rows.num_rows, np.int64)
        hashes = hashes_of(rows, self.names)
        columns = [
            pa.array(hashes),
            *(canonical(rows.column(name)) for name in self.names),
            pa.array(np.zeros(len(hashes), np.int64)),
        ]
        made = concat_tables(
            [*self._known.get(hashes), pa.Table.from_arrays(columns, names=[HASH, *self.names, _NUMBER])]
        )
        before = made.num_rows - rows.num_rows
        codes, firsts = codes_of([made.column(name).combine_chunks() for name in self.names], made.num_rows)
        return self._numbered(made.take(pa.array(firsts)), firsts >= before)[codes[before:]]

    def _numbered(self, found: pa.Table, new: npt.NDArray[np.bool_]) -> Numbers:
        """The numbers of some partitions, each a row; those that are new get one."""
        numbers = found.column(_NUMBER).to_numpy().copy()
        numbers[new] = self.count + np.arange(int(new.sum()))
        self.count += int(new.sum())
        if new.any():
            hashes = found.column(HASH).to_numpy()
            written = np.isin(hashes, hashes[new])
            rows = found.set_column(found.schema.get_field_index(_NUMBER), _NUMBER, pa.array(numbers))
            self._known.put(hashes[written], rows.filter(pa.array(written)))
        return numbers

    def changes(self) -> Changes:
        """What changed since the last save."""
        changes = self._known.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "count": self.count})

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""
        self._known.restore(changes)
        self.count = changes.note["count"]
