"""How far the partitions or groups of a stream have come: four columns of numbers, a row per partition.

Rules:
- What is known of a part only grows: a later text of it says at least what an earlier one does.
- As plain data they are texts, each a packed table: of all parts, or of those that have changed since the last call,
  for a reader that knows the others.
"""

from __future__ import annotations

import base64
from collections.abc import Container, Iterable, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Microseconds, Times

_NUMBERS = ("greatest", "seen_at", "allowed", "least")
_LONG_AGO = -(2**61)
"""The least time of parts that were saved without one."""
_KEYS = b"keys"
"""The metadata key of the columns that name the parts, with their types."""
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_UNPACKED = pa.ipc.IpcReadOptions(use_threads=False)


class PartitionProgress:
    """The parts of a stream, numbered as they were seen.

    >>> parts = PartitionProgress()
    >>> codes = parts.numbers_of(["a", "b"])
    >>> parts.see(codes, np.array([7, 5]), now=9)
    >>> again = PartitionProgress()
    >>> again.absorb(parts.changes())
    >>> (again.names, again.greatest.tolist(), parts.changes())
    (['a', 'b'], [7, 5], '')
    """

    def __init__(self) -> None:
        self.keys: pa.Schema | None = None
        """The columns that name the parts; None until they are known."""
        self.clear()

    def clear(self) -> None:
        """Forget all parts."""
        self.names: list[str] = []
        self.greatest: Times = np.empty(0, np.int64)
        self.seen_at: Times = np.empty(0, np.int64)
        """The clock when the last row of each came, whatever its time: until then it was not silent."""
        self.allowed: Times = np.empty(0, np.int64)
        """The bound that each allows."""
        self.least: Times = np.empty(0, np.int64)
        """The least time of each."""
        self._numbers: dict[str, int] = {}
        self._changed: set[int] = set()

    def __len__(self) -> int:
        return len(self.names)

    def numbers_of(self, names: Sequence[str]) -> Integers:
        """The number of each name, all different; a new name gets the next number, and no time or bound yet."""
        known = len(self.names)
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        fresh = [name for name, number in zip(names, numbers, strict=True) if number >= known]
        if fresh:
            self.names += fresh
            for name in _NUMBERS:
                unknown = END_OF_TIME if name == "least" else NO_BOUND
                setattr(self, name, np.concatenate([getattr(self, name), np.full(len(fresh), unknown, np.int64)]))
        return np.array(numbers, np.int64)

    def forget_unheard(self, but: Container[str]) -> None:
        """Forget the parts that have sent no row, except those of these names; the others get new numbers.

        >>> parts = PartitionProgress()
        >>> parts.see(parts.numbers_of(["a", "b", "c"])[:1], np.array([7]), now=9)
        >>> parts.forget_unheard(["c"])
        >>> parts.names
        ['a', 'c']
        """
        kept = np.flatnonzero((self.greatest > NO_BOUND) | np.array([name in but for name in self.names], bool))
        if len(kept) == len(self):
            return
        self._changed = {new for new, old in enumerate(kept.tolist()) if old in self._changed}
        self.names = [self.names[number] for number in kept]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        for column in _NUMBERS:
            setattr(self, column, getattr(self, column)[kept])

    def see(self, codes: Integers, times: Times, now: Microseconds) -> None:
        """Note the times of rows, each of the part of that number, and when they came."""
        touched = np.unique(codes)
        np.maximum.at(self.greatest, codes, times)
        np.minimum.at(self.least, codes, times)
        self.seen_at[touched] = np.maximum(self.seen_at[touched], now)
        # The silence of one that has not been heard yet counts from the first row of the stream.
        unheard = np.flatnonzero(self.seen_at == NO_BOUND)
        self.seen_at[unheard] = now
        self._changed.update(touched.tolist(), unheard.tolist())

    def spans(self) -> Times:
        """Over how much of its time each has sent rows."""
        heard = self.greatest > NO_BOUND
        return np.where(heard, self.greatest, 0) - np.where(heard, self.least, 0)

    def restart_silence(self, now: Microseconds) -> None:
        """Count the silence of all parts from now on."""
        self.seen_at[:] = now
        self._changed.update(range(len(self)))

    # As plain data

    def whole(self) -> str:
        """All parts, as a text."""
        return _text(self._table(np.arange(len(self))))

    def changes(self) -> str:
        """The parts that have changed since the last call, as a text; empty if none has."""
        changed = np.array(sorted(self._changed), np.int64)
        self._changed.clear()
        return _text(self._table(changed)) if len(changed) else ""

    def absorb(self, text: str) -> None:
        """Learn what another text says: each part is then as far as the further of the two."""
        table = _read(text)
        numbers = self.numbers_of(table.column("name").to_pylist())
        greatest, seen_at, allowed = (table.column(name).to_numpy() for name in _NUMBERS[:3])
        least = table.column("least").to_numpy() if "least" in table.column_names else _LONG_AGO
        self.least[numbers] = np.minimum(least, self.least[numbers])
        self.seen_at[numbers] = np.maximum(seen_at, self.seen_at[numbers])
        self.greatest[numbers] = np.maximum(greatest, self.greatest[numbers])
        self.allowed[numbers] = np.maximum(allowed, self.allowed[numbers])
        self._changed.update(numbers.tolist())
        if _KEYS in (table.schema.metadata or {}):
            self.keys = pa.ipc.read_schema(pa.py_buffer(table.schema.metadata[_KEYS]))

    def restore(self, texts: Iterable[str]) -> None:
        """Start anew from these texts, read one after another."""
        self.clear()
        for text in texts:
            self.absorb(text)
        self._changed.clear()

    def _table(self, numbers: Integers) -> pa.Table:
        names = self.names if len(numbers) == len(self) else [self.names[number] for number in numbers]
        columns = {name: getattr(self, name)[numbers] for name in _NUMBERS}
        metadata = None if self.keys is None else {_KEYS: self.keys.serialize().to_pybytes()}
        return pa.table({"name": pa.array(names, pa.string()), **columns}).replace_schema_metadata(metadata)


def newest(texts: Sequence[str]) -> str:
    """Several texts as one: for each part what the last text that names it says."""
    table = pa.concat_tables([_read(text) for text in texts]).combine_chunks()
    codes = table.column("name").combine_chunks().dictionary_encode().indices.to_numpy()
    last = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    # Of several places that a part has, the last one is written last.
    last[codes] = np.arange(len(codes))
    return _text(table.take(pa.array(last)))


def _text(table: pa.Table) -> str:
    packed = pa.BufferOutputStream()
    with pa.ipc.new_stream(packed, table.schema, options=_PACKED) as writer:
        writer.write_table(table)
    return base64.b64encode(packed.getvalue()).decode()


def _read(text: str) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(text), options=_UNPACKED).read_all()
