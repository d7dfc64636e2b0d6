"""One operator, several stores: their segments under one numbering, so that a host sees a single state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millrace.kernel.state import Changes


def joined(stores: Sequence[Changes], note: Mapping[str, Any]) -> Changes:
    """The changes of all stores as one, with a note of the operator's own."""
    count = len(stores)
    added = {
        number * count + place: table for place, store in enumerate(stores) for number, table in store.added.items()
    }
    removed = [number * count + place for place, store in enumerate(stores) for number in store.removed]
    return Changes(added, tuple(sorted(removed)), {**note, "stores": [dict(store.note) for store in stores]})


def parted(changes: Changes) -> list[Changes]:
    """What each store goes on from; undoes `joined`."""
    notes = changes.note["stores"]
    return [
        Changes(
            {number // len(notes): table for number, table in changes.added.items() if number % len(notes) == place},
            (),
            note,
        )
        for place, note in enumerate(notes)
    ]
