"""An input whose chunks are read in pieces, from a position inside a chunk."""

from __future__ import annotations

from typing import Any

from millrace.connectors.stream_input import Chunk, Position, StreamInput


class CutInput:
    """Gives at most as many rows as it is asked for; the rest of a chunk waits for the next read.

    Its position is that of its source, or where the cached chunk begins (`at`) and how many rows of it were read
    (`cut`). `skip` is that number for an input that is opened at such a position.
    """

    def __init__(self, source: StreamInput, skip: int = 0) -> None:
        self.source = source
        self._skip = skip
        self._chunk: Chunk | None = None
        self._at: Position = {}
        self._given = 0

    @property
    def finished(self) -> bool:
        """True if all rows have been read and none will follow."""
        return self.source.finished and self._chunk is None

    @property
    def pending(self) -> bool:
        """True if rows are held for a later time."""
        return self.source.pending

    @property
    def more(self) -> bool:
        """True if another read may give more rows, and will not wait for them."""
        return self._chunk is not None or self.source.more

    def read(self, limit: int | None = None) -> Chunk | None:
        """The next rows; None if there are none now."""
        if self._chunk is None:
            if limit is not None:
                # Only a chunk that is given in parts is returned to, and a position of files has a digest to make.
                self._at = self.source.position()
            self._given = self._skip
            self._chunk, self._skip = self.source.read(), 0
        chunk, begin = self._chunk, self._given
        if chunk is None:
            self._skip = begin
            return None
        if limit is None or chunk.rows.num_rows - begin <= limit:
            self._chunk = None
            return chunk.part(begin) if begin else chunk
        self._given += limit
        return chunk.part(begin, begin + limit)

    def position(self) -> dict[str, Any]:
        """Where the next row is."""
        if self._chunk is not None:
            return {"at": self._at, "cut": self._given}
        return {"at": self.source.position(), "cut": self._skip} if self._skip else self.source.position()
