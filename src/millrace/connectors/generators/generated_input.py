"""A generated stream as an input: its slices, in order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from millrace.connectors.generators import nexmark, random_rows
from millrace.connectors.stream_input import Chunk, Position
from millrace.plan.nodes.endpoints import Stream

_GENERATORS = {"generate": random_rows, "nexmark": nexmark}


class GeneratedInput:
    """The slices of a generated stream."""

    pending = False
    more = True

    def __init__(self, stream: Stream, schema: pa.Schema, position: Position | None) -> None:
        self.stream = stream
        self.schema = schema
        self._slices = slices_of(stream)
        self._next = int(position["slice"]) if position else 0

    @property
    def finished(self) -> bool:
        """True if all slices have been read."""
        return self._next >= self._slices

    def read(self) -> Chunk | None:
        """The next slice."""
        if self.finished:
            return None
        self._next += 1
        return Chunk(make_slice(self.stream, self.schema, self._next - 1))

    def position(self) -> dict[str, Any]:
        """The number of the next slice."""
        return {"slice": self._next}


def slices_of(stream: Stream) -> int:
    """How many slices a generated stream has; refuses wrong options.

    A slice is a function of the options and its number: slices can be made in parallel, and again after a restart.
    """
    return _GENERATORS[stream.connector.format].options_of(stream).slices


def make_slice(stream: Stream, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """The rows of a slice, in order of arrival, with their arrival in `__arrived`."""
    return _GENERATORS[stream.connector.format].generate(stream, schema, number)
