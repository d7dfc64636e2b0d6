"""Window buffers: the rows of each key in zones, from which windows are dropped and released (002 section 7.2).

Rules:
- A zone is a contiguous block of locations; the zones of a key are linked in the order in which they were filled. A
  location holds the entry of a row (see row_blocks.py), its time, and its input.
- A key's rows stand in the order of their entries, from the dequeue offset in its first zone to the enqueue offset in
  its last. Rows that leave from the front move the dequeue offset, and a zone that it has passed is released at once.
- Rows may come out of order, so rows in the middle may leave first; then the key's other rows are moved together.
- Zones that were released are used again first. When most are free, those in use move together and the rest of the
  memory goes back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millrace.kernel.columns.integers import Integers, grown, ranges
from millrace.kernel.elements import Mask

_NONE = -1
_ROOM = 16
_ZONE = 4
"""Locations of a zone."""
_MANY = 1024
"""Fewer zones than this are not moved together."""
_LEVEL = 50
"""A look at one more zone of all keys at once costs as much as following so many links one by one."""


@dataclass(frozen=True)
class BufferedRows:
    """The rows of some keys, key by key in the order of their entries."""

    keys: Integers
    counts: Integers
    places: Integers
    """Each row's key, by its place in `keys`."""
    locations: Integers
    chain: Integers
    """The zones of the keys, key by key."""
    zones: Integers
    """How many zones each key has."""
    entries: Integers
    times: Integers
    ports: Integers

    @property
    def owners(self) -> Integers:
        """Each row's key."""
        return self.keys[self.places]


class WindowBuffers:
    """Rows by key, in linked zones."""

    zone = _ZONE

    def __init__(self) -> None:
        self.rows = 0
        self._made = 0
        self._free = np.empty(0, np.int64)
        """How many zones there are so far, and those of them that are free."""
        self._next = np.full(_ROOM, _NONE, np.int64)
        self._entries = np.zeros(_ROOM * self.zone, np.int64)
        self._times = np.zeros_like(self._entries)
        self._ports = np.zeros_like(self._entries)
        self._head = np.full(_ROOM, _NONE, np.int64)
        self._tail = np.full(_ROOM, _NONE, np.int64)
        self._dequeue = np.zeros(_ROOM, np.int64)
        self._zones = np.zeros(_ROOM, np.int64)
        self.counts = np.zeros(_ROOM, np.int64)
        """How many rows each key has."""
        self._keys = 0

    @property
    def allocated(self) -> int:
        """How many locations the zones in use have."""
        return (self._made - len(self._free)) * self.zone

    @property
    def nbytes(self) -> int:
        """The memory of all of it."""
        rows = (self._next, self._entries, self._times, self._ports)
        keys = (self._head, self._tail, self._dequeue, self._zones, self.counts)
        return sum(int(each.nbytes) for each in (*rows, *keys))

    def grow(self, keys: int) -> None:
        """Have a buffer for each key, up to this number of keys."""
        self._keys = max(self._keys, keys)
        self._head, self._tail = grown(self._head, keys, _NONE), grown(self._tail, keys, _NONE)
        self._dequeue, self._zones = grown(self._dequeue, keys, 0), grown(self._zones, keys, 0)
        self.counts = grown(self.counts, keys, 0)

    def append(self, keys: Integers, entries: Integers, times: Integers, ports: Integers) -> None:
        """Put rows behind those that their keys have; the rows are in the order of their entries."""
        if not len(keys):
            return
        self._shrink()
        if len(keys) > 1 and not bool((keys[1:] >= keys[:-1]).all()):
            order = np.argsort(keys, kind="stable")
            keys, entries, times, ports = keys[order], entries[order], times[order], ports[order]
        begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        owners, counts = keys[begins], np.diff(begins, append=len(keys))
        filled, had = self._dequeue[owners] + self.counts[owners], self._zones[owners]
        tails = self._tail[owners]
        wanted = -(-(filled + counts) // self.zone) - had
        fresh = self._link(owners, wanted)
        offsets = ranges(filled, counts)
        places = np.repeat(np.arange(len(owners)), counts)
        number = offsets // self.zone - had[places]
        zones = tails[places]
        new = number >= 0
        if len(fresh):
            zones[new] = fresh[(np.cumsum(wanted) - wanted)[places[new]] + number[new]]
        self._write(zones * self.zone + offsets % self.zone, entries, times, ports)
        self.counts[owners] += counts
        self.rows += len(keys)

    def append_one(self, key: int, entry: int, time: int, port: int) -> None:
        """Put one row behind those that its key has."""
        self._shrink()
        filled = self._dequeue.item(key) + self.counts.item(key)
        if filled == self._zones.item(key) * self.zone:
            self._link(np.array([key]), np.array([1]))
        location = self._tail.item(key) * self.zone + filled % self.zone
        self._entries[location], self._times[location], self._ports[location] = entry, time, port
        self.counts[key] += 1
        self.rows += 1

    def held(self, keys: Integers) -> BufferedRows:
        """The rows of some keys."""
        counts, zones = self.counts[keys], self._zones[keys]
        chain = self._chain(keys, zones)
        offsets = ranges(self._dequeue[keys], counts)
        places = np.repeat(np.arange(len(keys)), counts)
        begins = np.cumsum(zones) - zones
        locations = chain[begins[places] + offsets // self.zone] * self.zone + offsets % self.zone
        columns = self._entries[locations], self._times[locations], self._ports[locations]
        return BufferedRows(keys, counts, places, locations, chain, zones, *columns)

    def keep(self, held: BufferedRows, kept: Mask) -> None:
        """Drop all rows but some."""
        if kept.all():
            return
        left = np.bincount(held.places[kept], minlength=len(held.keys))
        first = np.full(len(held.keys), len(kept))
        np.minimum.at(first, held.places[kept], np.flatnonzero(kept))
        begins = np.cumsum(held.counts) - held.counts
        gone = np.where(left > 0, first - begins, held.counts)
        # Where what is left is not the end of the key's rows, they are moved together, towards the end.
        torn = gone + left < held.counts
        if torn.any():
            gone[torn] = (held.counts - left)[torn]
            ends = (begins + held.counts)[torn]
            into = held.locations[ranges(ends - left[torn], left[torn])]
            moved = kept & torn[held.places]
            self._write(into, held.entries[moved], held.times[moved], held.ports[moved])
        self._advance(held, gone, left)

    def _advance(self, held: BufferedRows, gone: Integers, left: Integers) -> None:
        """Move the dequeue offsets past the rows that are gone, and release the zones passed."""
        keys = held.keys
        offsets = self._dequeue[keys] + gone
        passed = np.where(left > 0, offsets // self.zone, held.zones)
        begins = np.cumsum(held.zones) - held.zones
        zones = held.chain[ranges(begins, passed)]
        self._free = np.concatenate([self._free, zones])
        self._zones[keys] -= passed
        some = left > 0
        self._head[keys[some]] = held.chain[(begins + passed)[some]]
        self._head[keys[~some]] = self._tail[keys[~some]] = _NONE
        self._dequeue[keys] = np.where(some, offsets % self.zone, 0)
        self.counts[keys] = left
        self.rows -= int(gone.sum())

    def _link(self, owners: Integers, wanted: Integers) -> Integers:
        """New zones for some keys behind those they have, key by key."""
        total = int(wanted.sum())
        if not total:
            return np.empty(0, np.int64)
        zones = self._allocated(total)
        taking = wanted > 0
        owners, wanted = owners[taking], wanted[taking]
        ends = np.cumsum(wanted)
        begins = ends - wanted
        self._next[zones[:-1]] = zones[1:]
        self._next[zones[ends - 1]] = _NONE
        tails = self._tail[owners]
        self._next[tails[tails >= 0]] = zones[begins[tails >= 0]]
        self._head[owners[tails < 0]] = zones[begins[tails < 0]]
        self._tail[owners] = zones[ends - 1]
        self._zones[owners] += wanted
        return zones

    def _allocated(self, count: int) -> Integers:
        """Zones that are in use from now on: free ones first."""
        again = self._free[len(self._free) - min(count, len(self._free)) :]
        self._free = self._free[: len(self._free) - len(again)]
        first, self._made = self._made, self._made + count - len(again)
        self._next = grown(self._next, self._made, _NONE)
        self._entries = grown(self._entries, self._made * self.zone, 0)
        self._times = grown(self._times, self._made * self.zone, 0)
        self._ports = grown(self._ports, self._made * self.zone, 0)
        return np.concatenate([again, np.arange(first, self._made)])

    def _shrink(self) -> None:
        """Move the zones in use together if most are free, so that the memory of the others goes back."""
        if self._made < _MANY or 4 * len(self._free) < 3 * self._made:
            return
        used = np.ones(self._made, np.bool_)
        used[self._free] = False
        # The last number stands for none.
        numbers = np.append(np.where(used, np.cumsum(used) - 1, _NONE), _NONE)
        locations = np.repeat(used, self.zone)
        self._entries, self._times, self._ports = (
            each[: len(locations)][locations] for each in (self._entries, self._times, self._ports)
        )
        self._next = numbers[self._next[: self._made][used]]
        self._head, self._tail = numbers[self._head], numbers[self._tail]
        self._made, self._free = int(used.sum()), np.empty(0, np.int64)

    def _write(self, locations: Integers, entries: Integers, times: Integers, ports: Integers) -> None:
        self._entries[locations] = entries
        self._times[locations] = times
        self._ports[locations] = ports

    def _chain(self, keys: Integers, zones: Integers) -> Integers:
        """The zones of some keys, key by key in the order of their links."""
        if not len(keys):
            return np.empty(0, np.int64)
        most = int(zones.max())
        if most <= 1:
            return self._head[keys[zones > 0]]
        if int(zones.sum()) < _LEVEL * most:
            return self._followed(keys, zones)
        chain = np.empty(int(zones.sum()), np.int64)
        begins, present = np.cumsum(zones) - zones, self._head[keys]
        for level in range(most):
            on = zones > level
            begins, zones, present = begins[on], zones[on], present[on]
            chain[begins + level] = present
            present = self._next[present]
        return chain

    def _followed(self, keys: Integers, zones: Integers) -> Integers:
        """The same, link by link."""
        chain, following = [], self._next.item
        for zone, count in zip(self._head[keys].tolist(), zones.tolist(), strict=True):
            for _ in range(count):
                chain.append(zone)
                zone = following(zone)
        return np.array(chain, np.int64)
