"""The contract of an operator.

Rules:
- The executor calls `on_batch` for rows of an input, and `on_punctuation` when the least bound of all inputs has
  advanced; an operator never sees a bound that did not. One that works `by_input` is told the bound of each input by
  itself, with `on_bound`, and says of each what it waits for.
- An operator may leave work for later: while it is `unfinished` the executor calls `on_more`, before anything else.
- An operator yields batches and punctuation; a punctuation it yields holds for all it yields later.
- It does not alter what it is given, and keeps what it must remember in segments.
- It reads no clock and does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from millrace.kernel.elements import (
    NO_BOUND,
    Batch,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
    Punctuation,
)
from millrace.kernel.state import Changes


class Operator:
    """Rows in, rows out; by default without state, and passing every bound on."""

    label = "operator"
    holds = False
    """Whether it may hold rows, and wait for a bound."""
    senses_bounds = False
    """Whether it does more with a bound than to pass it on; an ETS arc skips those that do not."""
    uses_every_bound = False
    """Whether every advance of the bound may be of use to it, not only some boundaries."""
    by_input = False
    """Whether it is told the bound of each input by itself, instead of the least of all."""
    leads = False
    """Whether what it holds may leave before it works on the rows that release it."""
    learns_cost = False
    """Whether it wants to know what its work takes."""
    unfinished = False
    """Whether it has put work off that it can go on with at once."""
    queues = False
    """Whether it is a queue (see queue.py): what it holds is its state; it takes all its input before it lets go of
    anything, and lets go only when all that it let go before has been worked off downstream."""
    compared = 0
    """How many pairs of rows it has compared so far."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        """Called with rows of input `port`, never empty."""
        raise AssertionError("an operator says what it does with rows")

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        """Called when the least bound of all inputs has advanced to `punctuation.until`."""
        yield punctuation

    def on_bound(self, port: int, punctuation: Punctuation) -> Iterator[Element]:
        """Called, if it works by input, when the bound of input `port` has advanced to `punctuation.until`."""
        raise AssertionError("an operator that works by input says what it does with a bound")

    def on_more(self, limit: int | None) -> Iterator[Element]:
        """Called while it is unfinished, to go on with at most `limit` rows."""
        raise AssertionError("an operator that puts work off says how it goes on")

    def on_cost(self, micros: Microseconds) -> None:
        """Called, if it learns cost, with what its last step took."""

    def on_joint(self, punctuation: JointPunctuation) -> Iterator[Element]:
        """Called when a promise about pairs of times has come."""
        yield punctuation

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        """Called when the bounds of single groups of the stream have advanced."""
        yield punctuation

    def usable(self, until: Microseconds) -> Microseconds:
        """The greatest bound up to `until` that is of use to it; `NO_BOUND` when none is."""
        return NO_BOUND

    def wanted(self) -> Microseconds | None:
        """The least bound that would release something; None when nothing waits."""
        return None

    def wants(self) -> Sequence[Mapping[int, Microseconds]]:
        """If it works by input: each way to release something, as the bounds that some inputs must all reach."""
        return ()

    def required(self, until: Microseconds, port: int = 0) -> Microseconds | None:
        """The bound of input `port` that it needs to promise `until` on its output; None where it needs none."""
        return until

    @property
    def held(self) -> int:
        """How many rows it holds."""
        return 0

    @property
    def turned_away(self) -> int:
        """How many rows it has dropped because they came below a bound of its own making."""
        return 0

    @property
    def state_bytes(self) -> int:
        """How much memory its state takes."""
        return 0

    def changes(self) -> Changes:
        """Called after the graph has come to rest: what changed since the last save."""
        return Changes()

    def restore(self, changes: Changes) -> None:
        """Called before the first row: all saved segments as `added`, and the last note."""
