"""Latent timestamps: rows get their time where an operator first needs one (000 section 5)."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.elements import END_OF_TIME, Batch, Element, Microseconds, Punctuation
from millrace.kernel.operator import Operator
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.state import Changes


class Stamp(Operator):
    """Give each row the clock at which it comes here as its time; an operator that needs a time follows.

    An operator that waits for rows from here asks it for an ETS. That is the clock, even if rows are still under way
    to this operator: they will be stamped later.
    State: the last bound, so that time does not go back after a restart. Punctuations: the stamps are its own; of
    those that come in only the end of time is passed on.
    """

    label = "stamp"
    passes_rows = True
    stamps = True
    senses_bounds = True

    def __init__(self) -> None:
        self.edge = Ingress(TimeContract("latent", ets="on_demand"))
        self._now: Microseconds = 0

    def on_time(self, now: Microseconds) -> None:
        """Called before every other call: the clock."""
        self._now = now

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        yield self.edge.admit(batch.rows, self._now).admitted
        yield Punctuation(self.edge.bound)

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        if punctuation.until == END_OF_TIME:
            self.edge.raise_bound(END_OF_TIME)
            yield punctuation

    def changes(self) -> Changes:
        return Changes(note={"bound": self.edge.bound})

    def restore(self, changes: Changes) -> None:
        self.edge.raise_bound(changes.note["bound"])
