"""Order-agnostic join of two or more inputs (004 Fig. 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    Batch,
    Element,
    JointPunctuation,
    Microseconds,
    Punctuation,
)
from millrace.kernel.joins.any_order.join_core import JoinCore
from millrace.kernel.joins.any_order.slow_release import SlowRelease
from millrace.kernel.joins.sides import JoinTime, Side
from millrace.kernel.operator import StoringOperator

_LARGE = 2**15
"""Pieces of so many rows leave as they are; smaller ones are put together."""


class Join(StoringOperator):
    """Rows that match each other, as soon as the last of them has come.

    State: the rows of each input that rows still to come of the others may match. Punctuations: the bound on the time
    of joined rows, which follows from the bounds of the inputs and, where that time is not the latest, from what is
    kept; and, if asked for, both bounds as one promise about pairs of times. With a `delay`, rows of an outer side that
    match nothing leave little by little, at most so much later than they could (see slow_release.py).
    """

    label = "join"
    noted = ("promised", "joint_bounds")
    by_input = True
    senses_bounds = True
    uses_every_bound = True

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        sides: Sequence[Side],
        residual: Expression | None = None,
        time: JoinTime = "max",
        *,
        joint: bool = False,
        delay: Microseconds = 0,
    ) -> None:
        self.core = JoinCore(schemas, sides, residual, time)
        self._slow = SlowRelease(delay) if delay else None
        self.stores = (self.core,) if self._slow is None else (self.core, self._slow)
        self.holds = any(side.outer for side in sides)
        self.joint = joint
        self._outer = [port for port, side in enumerate(sides) if side.outer]
        self._promised: Microseconds = NO_BOUND
        self._joint_bounds = [NO_BOUND, NO_BOUND]

    @property
    def compared(self) -> int:  # type: ignore[override]
        """How many pairs of rows it has compared so far."""
        return self.core.compared

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        pieces: list[pa.RecordBatch] = []
        for piece in self.core.pieces(port, batch):
            if piece.num_rows >= _LARGE:
                yield Batch(piece)
            else:
                pieces.append(piece)
        if pieces:
            yield Batch(pa.concat_batches(pieces))
        if self._slow is not None and len(self._slow):
            yield from self._slow.oldest(len(batch))
            yield from self._told(ets=False)

    def on_bound(self, port: int, punctuation: Punctuation) -> Iterator[Element]:
        made = self.core.raise_bound(port, punctuation.until)
        if self._slow is not None:
            if made is not None:
                self._slow.add(port, made, self.core.stores[1 - port].last_matches(made.rows, made.times))
            made = self._slow.due(port, punctuation.until)
        if made is not None:
            yield made
        yield from self._told(punctuation.ets)

    def _told(self, ets: bool) -> Iterator[Element]:
        """What the bounds of the inputs say about joined rows."""
        until = self.core.until()
        if self._slow is not None:
            until = min(until, self._slow.least_time())
        if until > self._promised:
            self._promised = until
            yield Punctuation(until, ets)
        if self.joint:
            yield from self._jointly()

    def _jointly(self) -> Iterator[Element]:
        first, second = (
            self.core.unmatched_bound(port) if port in self._outer else self.core.bounds[port] for port in (0, 1)
        )
        if NO_BOUND not in (first, second) and [first, second] != self._joint_bounds:
            self._joint_bounds = [first, second]
            yield JointPunctuation((first, second))

    def wants(self) -> Sequence[Mapping[int, Microseconds]]:
        ways = []
        for port in self._outer:
            until = self.core.stores[port].least_until()
            if until is not None:
                ways.append({1 - port: _after(until)})
            due = None if self._slow is None else self._slow.least_due(1 - port)
            if due is not None:
                ways.append({1 - port: due})
        return ways

    def required(self, until: Microseconds, port: int = 0) -> Microseconds | None:
        if until == END_OF_TIME:
            return until
        time, stores = self.core.time, self.core.stores
        needed = [until] if time in ("max", "min", port) or port in self._outer else []
        for other, store in enumerate(stores):
            # Rows that hold the bound back: those whose time may become that of a result, and those given alone.
            if other != port and (time in ("min", other) or store.side.outer):
                last = store.last_until(until, unmatched=time not in ("min", other))
                needed += [] if last is None else [self._delayed(_after(last))]
        due = None if self._slow is None else self._slow.last_due(port, until)
        needed += [] if due is None else [due]
        return max(needed, default=None)

    def _delayed(self, until: Microseconds) -> Microseconds:
        """The bound at which the rows have left that a bound releases."""
        delay = 0 if self._slow is None else self._slow.delay
        return min(until, END_OF_TIME - delay) + delay


def _after(until: Microseconds) -> Microseconds:
    """The least bound that has passed a time."""
    return min(until, END_OF_TIME - 1) + 1
