"""A sequence over several inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    GroupPunctuation,
    Microseconds,
    Punctuation,
)
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.hold_buffer import HoldBuffer

_PORT = "__port"


class Number(StoringOperator):
    """Number rows from 0 on by time, then input, then order in the input; the number is their time from here on.

    A row gets its number when the bound is past its time, for until then a row of equal time may come before it.
    State: the rows at or above the bound, and the next number. Punctuations: the next number, for no later row has a
    lesser one; the end stays the end. Promises for single groups end here.
    """

    label = "number"
    passes_rows = True
    holds = True
    senses_bounds = True
    uses_every_bound = True
    noted = ("number",)

    def __init__(self) -> None:
        self._waiting = HoldBuffer()
        self._number = 0
        self.stores = (self._waiting,)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        ports = pa.array(np.full(len(batch), port, np.int32))
        self._waiting.add(Batch(batch.rows.append_column(_PORT, ports)))
        return iter(())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        released = self._waiting.release(punctuation.until - 1)
        if released is not None:
            yield self._numbered(released.rows)
        until = END_OF_TIME if punctuation.until == END_OF_TIME else self._number
        yield Punctuation(until, punctuation.ets)

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        return iter(())

    def _numbered(self, rows: pa.RecordBatch) -> Batch:
        """Rows sorted by time, under their numbers."""
        times, ports = rows.column(TIME).to_numpy(), rows.column(_PORT).to_numpy()
        if (ports != ports[0]).any():
            rows = rows.take(pa.array(np.lexsort((ports, times))))
        numbers = np.arange(self._number, self._number + rows.num_rows)
        self._number += rows.num_rows
        kept = rows.drop_columns([_PORT])
        return Batch(kept.set_column(kept.schema.get_field_index(TIME), TIME, pa.array(numbers)))

    def wanted(self) -> Microseconds | None:
        least = self._waiting.least
        return None if least is None else least + 1

    def required(self, until: Microseconds, port: int = 0) -> Microseconds:
        if until <= self._number:
            return NO_BOUND
        if until - self._number > len(self._waiting):
            return END_OF_TIME
        last = self._waiting.least_after(until - self._number - 1)
        return END_OF_TIME if last is None else last + 1
