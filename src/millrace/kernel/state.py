"""Segments: the pieces an operator's state is made of, and what of them changed since the last save.

Rules:
- A segment is an immutable Arrow table under a number that its operator never uses again.
- Saving hands out the segments added and the numbers removed since the last save, never the whole.
- A segment that came and went between two saves is never seen.
- The segments of an operator with several stores have one numbering, so that a host sees a single state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Changes:
    """Segments added and removed since the last save, and a small note that is written every time."""

    added: Mapping[int, pa.Table] = field(default_factory=dict)
    removed: tuple[int, ...] = ()
    note: Mapping[str, Any] = field(default_factory=dict)


class Segments:
    """The live segments of one operator, in the order they were added."""

    def __init__(self) -> None:
        self.live: dict[int, pa.Table] = {}
        self._next = 0
        self._added: set[int] = set()
        self._removed: set[int] = set()

    def add(self, table: pa.Table) -> int:
        """Keep a table; its number."""
        number = self._next
        self._next += 1
        self.live[number] = table
        self._added.add(number)
        return number

    def remove(self, number: int) -> None:
        """Drop a segment."""
        del self.live[number]
        if number in self._added:
            self._added.discard(number)
        else:
            self._removed.add(number)

    def changes(self, note: Mapping[str, Any]) -> Changes:
        """What changed since the last call."""
        added = {number: self.live[number] for number in sorted(self._added)}
        removed = tuple(sorted(self._removed))
        self._added.clear()
        self._removed.clear()
        return Changes(added, removed, note)

    def restore(self, segments: Mapping[int, pa.Table], following: int) -> None:
        """Continue from saved segments; new ones are numbered from `following` on."""
        self.live = dict(sorted(segments.items()))
        self._next = following
        self._added.clear()
        self._removed.clear()

    @property
    def following(self) -> int:
        """The number of the next segment."""
        return self._next


def combined(stores: Sequence[Changes], note: Mapping[str, Any]) -> Changes:
    """The changes of all stores as one, with a note of the operator's own."""
    count = len(stores)
    added = {
        number * count + place: table for place, store in enumerate(stores) for number, table in store.added.items()
    }
    removed = [number * count + place for place, store in enumerate(stores) for number in store.removed]
    return Changes(added, tuple(sorted(removed)), {**note, "stores": [dict(store.note) for store in stores]})


def separated(changes: Changes) -> list[Changes]:
    """What each store continues from; undoes `combined`."""
    notes = changes.note["stores"]
    return [
        Changes(
            {number // len(notes): table for number, table in changes.added.items() if number % len(notes) == place},
            (),
            note,
        )
        for place, note in enumerate(notes)
    ]
