"""What a host keeps of the saves of an operator or store, and gives back at a restart."""

from __future__ import annotations

import pyarrow as pa

from millrace.kernel.state import Changes


class SavedSegments:
    """The segments that all saves so far have left."""

    def __init__(self) -> None:
        self._live: dict[int, pa.Table] = {}

    def after(self, changes: Changes) -> Changes:
        """What a restart after one more save goes on from; checks the promises of a save."""
        assert not set(changes.removed) & set(changes.added)
        assert set(changes.removed) <= set(self._live), "a segment was removed that nobody had"
        assert not set(changes.added) & set(self._live), "the number of a segment was used again"
        for number in changes.removed:
            del self._live[number]
        self._live.update(changes.added)
        return Changes(dict(self._live), (), changes.note)
