"""Progress that an operator deduces from the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.operator import Operator
from millrace.kernel.progress.order import Entering, Order
from millrace.kernel.state import Changes


class Slack(Operator):
    """Assume that no row comes further behind than an order allows (004 section 2, option 2).

    The order says how far: by a time behind the greatest time seen, or by a number of rows. Rows further behind are
    dropped and counted, whatever their own stream has promised.
    State: that of the order, the greatest time, the bound, and how many rows were dropped. Punctuations: those that
    come in are ignored, but for the end of time; its own are what the rows so far allow.
    """

    label = "slack"
    passes_rows = True
    senses_bounds = True

    def __init__(self, order: Order) -> None:
        self.order = order
        self._greatest = NO_BOUND
        self._bound = NO_BOUND
        self._turned_away = 0

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        times = batch.times
        greatest = np.maximum(np.maximum.accumulate(times), self._greatest)
        allowed = self.order.after(Entering(batch.rows, times, greatest, None, NO_BOUND))
        bounds = np.maximum.accumulate(np.append(self._bound, allowed))
        kept = batch.where(times >= bounds[:-1])
        self._turned_away += len(batch) - len(kept)
        self._greatest = int(greatest[-1])
        if len(kept):
            yield kept
        if bounds[-1] > self._bound:
            self._bound = int(bounds[-1])
            yield Punctuation(self._bound)

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        if punctuation.until == END_OF_TIME:
            yield punctuation

    def required(self, until: Microseconds, port: int = 0) -> Microseconds:
        # It ignores the bounds of streams, so it asks for none.
        return END_OF_TIME

    @property
    def turned_away(self) -> int:
        return self._turned_away

    def changes(self) -> Changes:
        numbers = {"greatest": self._greatest, "bound": self._bound, "turned_away": self._turned_away}
        return Changes(note={**numbers, "order": self.order.save()})

    def restore(self, changes: Changes) -> None:
        note = changes.note
        self._greatest, self._bound, self._turned_away = note["greatest"], note["bound"], note["turned_away"]
        self.order.restore(note["order"])
