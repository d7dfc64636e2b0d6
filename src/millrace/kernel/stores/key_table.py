"""Key table: a number for each key, in the order in which keys are first seen (the key hash table of 002, section 7).

Rules:
- Keys are equal if their values are: null equals null, NaN equals NaN, and -0.0 equals 0.0.
- A key's place is found by its hash, by open addressing, and then the keys themselves are compared: keys that share a
  hash have different numbers.
- A number is never used again, and no key is ever forgotten.
- A table that continues from a save gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns import hashing
from millrace.kernel.columns.comparison import canonical, same_keys
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.integers import Integers, grown
from millrace.kernel.elements import Mask
from millrace.kernel.state import Changes
from millrace.kernel.stores.row_gather import compact, gathered, parts_of
from millrace.kernel.stores.run_store import RowRun, RunStore

_NONE = -1
_FEW, _SOME = 128, 1024
"""Up to this many rows are looked up one by one among the recent keys; some more where all keys are among these."""
_RECENT = 2**17
"""This many recent keys are remembered by value, at most."""
_SURPRISE = 0.1
"""The share of keys not among the recent ones, above which some rows are not looked up there for a while."""
_FIRST_ROOM = 64

_FRACTIONS = {kind.id for kind in (pa.float16(), pa.float32(), pa.float64())}
_TIMES = {
    kind.id
    for kind in (pa.timestamp("us"), pa.duration("us"), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"))
}


class KeyChunk(RowRun):
    """Keys in order of their numbers, which begin with `begin`."""

    def __init__(self, rows: pa.RecordBatch, begin: int) -> None:
        super().__init__(pa.Table.from_batches([rows]))
        self.rows = rows
        self.begin = begin


class KeyTable:
    """The numbers of keys, by the columns `names`; without columns there is one key.

    >>> table = KeyTable(["name"])
    >>> table.numbers(pa.record_batch({"name": ["b", None, "b", "a"]})).tolist()
    [0, 1, 0, 2]
    >>> table.keys().column("name").to_pylist()
    ['b', None, 'a']
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._clear()

    def _clear(self) -> None:
        self._size = 0
        self._store = RunStore(_merged, whole=True)
        self._hashes = np.empty(_FIRST_ROOM, np.uint64)
        """The hash of each key."""
        self._slots = np.full(2 * _FIRST_ROOM, _NONE, np.int64)
        """The numbers of keys by hash: each in the first free slot from its hash on. At most half are taken."""
        self._recent: dict[Hashable, int] = {}
        self._asked = 0
        """How many rows have come, in batches of some, since not all keys are among the recent ones."""

    def __len__(self) -> int:
        return self._size

    @property
    def _chunks(self) -> list[KeyChunk]:
        """The keys, in order of their numbers."""
        return self._store.runs

    @property
    def nbytes(self) -> int:
        """The memory of the keys and of the index."""
        return self._store.nbytes + int(self._hashes.nbytes + self._slots.nbytes)

    def numbers(self, rows: pa.RecordBatch) -> Integers:
        """The number of each row's key; keys that are new get the next ones."""
        return self._numbers(rows, add=True)

    def find(self, rows: pa.RecordBatch) -> Integers:
        """The number of each row's key; -1 for keys that are not here."""
        return self._numbers(rows, add=False)

    def keys(self, numbers: Integers | None = None) -> pa.Table:
        """The keys of some numbers, in that order, or of all."""
        if not self.names:
            return pa.table({"key": np.arange(self._size) if numbers is None else numbers}).select([])
        if not self._chunks:
            return pa.table({name: pa.nulls(0) for name in self.names})
        if numbers is None:
            return pa.Table.from_batches([chunk.rows for chunk in self._chunks])
        return pa.Table.from_batches([self._keys(numbers)] if len(numbers) else [], self._chunks[0].rows.schema)

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._store.changes({"keys": self._size})

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        self._clear()
        self._store.restore(changes, self._restored)
        self._size = changes.note["keys"]

    def _restored(self, table: pa.Table) -> KeyChunk:
        chunk = KeyChunk(table.combine_chunks().to_batches()[0], self._size)
        self._enter(hashing.hashes(chunk.rows.columns, len(chunk)))
        return chunk

    def _numbers(self, rows: pa.RecordBatch, add: bool) -> Integers:
        count = rows.num_rows
        if not self.names:
            self._size = max(self._size, 1) if count and add else self._size
            return np.full(count, min(self._size, 1) - 1)
        if count > _FEW and not (count <= _SOME and self._all_recent(count)):
            return self._looked_up(rows, add)
        values = self._values(rows)
        found = np.array([self._recent.get(value, _NONE) for value in values], np.int64)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            found[missing] = self._looked_up(rows if len(missing) == count else rows.take(pa.array(missing)), add)
            if add and (count <= _FEW or len(missing) <= _SURPRISE * count):
                self._remember([values[place] for place in missing.tolist()], found[missing])
        return found

    def _all_recent(self, count: int) -> bool:
        """True if all keys are among the recent ones; they become so when as many rows have come in such batches."""
        if len(self._recent) == self._size:
            return True
        self._asked += count
        if self._asked < self._size or self._size > _RECENT:
            return False
        self._asked = 0
        values = (value for chunk in self._chunks for value in self._values(chunk.rows))
        self._recent = dict(zip(values, range(self._size), strict=True))
        return True

    def _values(self, rows: pa.RecordBatch) -> list[Hashable]:
        """Each row's key as a value that equals those of the same key."""
        columns = [_values(rows.column(name)) for name in self.names]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def _remember(self, values: Sequence[Hashable], numbers: Integers) -> None:
        if len(self._recent) > _RECENT:
            self._recent.clear()
        self._recent.update(zip(values, numbers.tolist(), strict=True))

    def _looked_up(self, rows: pa.RecordBatch, add: bool) -> Integers:
        """The numbers of the rows' keys, each distinct key looked up once."""
        columns = [_plain(rows.column(name)) for name in self.names]
        alone = np.zeros(1, np.int64)
        codes, firsts = codes_of(columns, rows.num_rows) if rows.num_rows > 1 else (alone, alone)
        if len(firsts) < len(codes):
            columns = [column.take(pa.array(firsts)) for column in columns]
        hashes = hashing.hashes(columns)
        found = self._found(columns, hashes)
        new = found < 0
        if add and new.any():
            found[new] = np.arange(self._size, self._size + int(new.sum()))
            fresh = pa.RecordBatch.from_arrays(columns, names=list(self.names))
            added = compact(fresh) if new.all() else fresh.filter(pa.array(new))
            self._store.add(KeyChunk(added, self._size))
            self._enter(hashes[new])
        return found[codes]

    def _found(self, columns: Sequence[pa.Array], hashes: hashing.Words) -> Integers:
        """The number of each key, -1 for those that are not here."""
        found = np.full(len(hashes), _NONE, np.int64)
        asked, probes = np.arange(len(hashes)), _Probes(hashes, self._mask)
        while len(asked):
            numbers = self._probed(probes)
            taken = numbers >= 0
            asked, numbers, probes = asked[taken], numbers[taken], probes.where(taken)
            if not len(asked):
                break
            same = self._equal(columns, asked, numbers)
            found[asked[same]] = numbers[same]
            # Another key of the same hash: there may be more of them further on.
            asked, probes = asked[~same], probes.where(~same)
            probes.advance()
        return found

    def _probed(self, probes: _Probes) -> Integers:
        """The next number of each hash, where its probe then is; -1 if there is none."""
        found = self._slots[probes.slots]
        on = np.flatnonzero((found >= 0) & (self._hashes[found] != probes.hashes))
        while len(on):
            probes.advance(on)
            found[on] = self._slots[probes.slots[on]]
            on = on[(found[on] >= 0) & (self._hashes[found[on]] != probes.hashes[on])]
        return found

    def _equal(self, columns: Sequence[pa.Array], places: Integers, numbers: Integers) -> Mask:
        """Where the keys at some places are those of some numbers."""
        found = np.ones(len(places), np.bool_)
        whole = len(places) == len(columns[0])
        for column, other in zip(columns, self._keys(numbers).columns, strict=True):
            found &= _equal(column if whole else column.take(pa.array(places)), other)
        return found

    def _keys(self, numbers: Integers) -> pa.RecordBatch:
        """The keys of some numbers, of which there are some."""
        order, parts = parts_of(numbers, np.array([chunk.begin for chunk in self._chunks]))
        pieces = [(self._chunks[owner].rows, some - self._chunks[owner].begin) for owner, some in parts]
        return gathered(pieces, order)

    def _enter(self, hashes: hashing.Words) -> None:
        """Put the next keys into the index, which doubles when it is half full."""
        numbers = np.arange(self._size, self._size + len(hashes))
        self._size += len(hashes)
        self._hashes = grown(self._hashes, self._size, 0)
        self._hashes[numbers] = hashes
        if len(self._slots) < 2 * len(self._hashes):
            self._slots = np.full(2 * len(self._hashes), _NONE, np.int64)
            numbers = np.arange(self._size)
        self._insert(numbers)

    def _insert(self, numbers: Integers) -> None:
        probes = _Probes(self._hashes[numbers], self._mask)
        while len(numbers):
            free = self._slots[probes.slots] < 0
            # Of several that want one slot, the last gets it; the others look on.
            self._slots[probes.slots[free]] = numbers[free]
            left = self._slots[probes.slots] != numbers
            numbers, probes = numbers[left], probes.where(left)
            probes.advance()

    @property
    def _mask(self) -> int:
        return len(self._slots) - 1


def _merged(chunks: Sequence[KeyChunk]) -> KeyChunk:
    return KeyChunk(pa.concat_batches([chunk.rows for chunk in chunks]), chunks[0].begin)


class _Probes:
    """Where each of some hashes is looked for next: steps that grow by one each lead through all slots."""

    def __init__(self, hashes: hashing.Words, mask: int) -> None:
        self.hashes = hashes
        self.slots = (hashes & np.uint64(mask)).astype(np.int64)
        self._steps = np.zeros(len(hashes), np.int64)
        self._mask = mask

    def where(self, mask: Mask) -> _Probes:
        """Some of the probes."""
        some = _Probes.__new__(_Probes)
        some.hashes, some.slots, some._steps, some._mask = (
            self.hashes[mask],
            self.slots[mask],
            self._steps[mask],
            self._mask,
        )
        return some

    def advance(self, which: Integers | slice = slice(None)) -> None:
        """Look on in the next slot."""
        self._steps[which] += 1
        self.slots[which] = (self.slots[which] + self._steps[which]) & self._mask


def _plain(column: pa.Array) -> pa.Array:
    """The values themselves, with equal bits where they are equal."""
    return canonical(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)


def _values(column: pa.Array) -> list[Hashable]:
    """Values of Python's that are equal where those of the column are."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _values(column.dictionary_decode())
    if kind.id in _TIMES:
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    values: list[Hashable] = column.to_pylist()
    if kind.id in _FRACTIONS:
        return ["NaN" if value != value else value for value in values]
    return values


def _equal(ones: pa.Array, others: pa.Array) -> Mask:
    """Where values are equal; null equals null."""
    if pa.types.is_null(ones.type):
        return np.ones(len(ones), np.bool_)
    found = same_keys([ones], [others])
    assert found is not None
    if ones.null_count and others.null_count:
        found |= pc.and_(ones.is_null(), others.is_null()).to_numpy(zero_copy_only=False)
    return found
