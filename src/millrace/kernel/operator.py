"""The contract of an operator: what to write to add one.

Rules:
- The executor calls `on_batch` with rows of one input, and `on_punctuation` when the least bound of all inputs has
  advanced; an operator never sees a bound that did not. An operator that works `by_input` gets the bound of each input
  by itself instead, through `on_bound`, and says for each what it waits for.
- An operator yields batches and punctuations. A punctuation it yields holds for everything it yields later.
- An operator may postpone work: while it is `unfinished` the executor calls `on_more`, before anything else.
- It does not alter its input. What it must remember it keeps in segments (see state.py), for `changes` and `restore`.
- It reads no clock and does no I/O.

A whole operator, with a state of one number:

>>> import numpy as np, pyarrow as pa
>>> class EveryNth(Operator):
...     # Keep every n-th row. State: how many rows have come. Punctuations: passed on.
...     label = "every nth"
...
...     def __init__(self, n):
...         self.n, self._seen = n, 0
...
...     def on_batch(self, port, batch):
...         numbers = self._seen + np.arange(1, len(batch) + 1)
...         self._seen += len(batch)
...         kept = batch.where(numbers % self.n == 0)
...         if len(kept):
...             yield kept
...
...     def changes(self):
...         return Changes(note={"seen": self._seen})
...
...     def restore(self, changes):
...         self._seen = changes.note["seen"]
>>> operator = EveryNth(2)
>>> def values(*numbers):
...     return Batch(pa.record_batch({"v": numbers, "__time": numbers}))
>>> [kept.rows["v"].to_pylist() for kept in operator.on_batch(0, values(1, 2, 3))]
[[2]]
>>> list(operator.on_punctuation(Punctuation(until=4)))
[Punctuation(until=4, ets=False)]
>>> again = EveryNth(2)
>>> again.restore(operator.changes())
>>> [kept.rows["v"].to_pylist() for kept in again.on_batch(0, values(4, 5))]
[[4]]

An operator that waits for a bound sets `holds` and `senses_bounds`, and says in `wanted` which bound releases
something: relational/merge.py is a short one. Its tests call `check_operator`, which tries what operators promise.
To use it in a graph, see graph/graph.py; for queries, a plan node and plan/physical/operator_choice.py choose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from millrace.kernel.elements import (
    NO_BOUND,
    Batch,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
    Punctuation,
)
from millrace.kernel.metrics import AggregateMetrics, JoinMetrics, LookupCounts
from millrace.kernel.state import Changes, combined, separated


class Operator:
    """Rows in, rows out. By default it has no state and passes every bound on."""

    label = "operator"
    holds = False
    """True if it may hold rows, and wait for a bound."""
    senses_bounds = False
    """True if it does more with a bound than pass it on; ETS arcs skip operators that do not."""
    uses_every_bound = False
    """True if it can use every advance of the bound, not only some boundaries."""
    by_input = False
    """True if it is told the bound of each input by itself, instead of the least of all."""
    passes_rows = False
    """True if what it yields are rows of its inputs, each once at most, and not results made of several."""
    leads = False
    """True if what it holds may leave before it works on the rows that release it."""
    learns_cost = False
    """True if it is to be told how long its steps take."""
    unfinished = False
    """True if it has postponed work that it can go on with at once."""
    queues = False
    """True if it is a queue (see updates/queue.py): it takes all its input before it releases rows, and releases rows
    only when those it released before have been processed downstream."""
    stamps = False
    """True if it gives rows their time by the clock, which it is told before every call (see progress/stamp.py)."""
    calls_by_row = False
    """True if it calls functions of a user row by row: what they cost is only known when it is measured."""
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
        raise AssertionError("an operator that postpones work says how it goes on")

    def on_cost(self, micros: Microseconds) -> None:
        """Called, if it learns cost, with the duration of its last step."""

    def on_joint(self, punctuation: JointPunctuation) -> Iterator[Element]:
        """Called with a promise about pairs of times."""
        yield punctuation

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        """Called when the bounds of single groups of the stream have advanced."""
        yield punctuation

    def usable(self, until: Microseconds) -> Microseconds:
        """The greatest bound up to `until` that it can use; `NO_BOUND` when it can use none."""
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
        """How many rows it holds, or partial results in their place."""
        return 0

    def join_metrics(self) -> JoinMetrics | None:
        """If it is a join whose results leave in order: how it works at present."""
        return None

    def aggregate_metrics(self) -> AggregateMetrics | None:
        """If it is an aggregate that keeps rows or panes: which, at present."""
        return None

    def lookup_counts(self) -> LookupCounts | None:
        """If it is an as-of join: how many rows have met one."""
        return None

    @property
    def held_partials(self) -> int:
        """How many of what it holds are partial results, each of any number of rows."""
        return 0

    @property
    def turned_away(self) -> int:
        """How many rows it has dropped because they came below a bound that it had made itself."""
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


class Store(Protocol):
    """What an operator keeps rows in."""

    def __len__(self) -> int:
        """How many rows it has."""

    @property
    def nbytes(self) -> int:
        """How much memory they take."""

    def changes(self) -> Changes:
        """What changed since the last save."""

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""


class StoringOperator(Operator):
    """An operator whose state is some stores and a few plain values: what it holds and saves follows from them."""

    noted: tuple[str, ...] = ()
    """The plain values that are saved: "bound" is the attribute `_bound`."""

    stores: tuple[Store, ...]
    """Its stores, set by `__init__`, always in the same order."""

    @property
    def held(self) -> int:
        return sum(map(len, self.stores))

    @property
    def state_bytes(self) -> int:
        return sum(store.nbytes for store in self.stores)

    def changes(self) -> Changes:
        note = {name: getattr(self, f"_{name}") for name in self.noted}
        changes = [store.changes() for store in self.stores]
        if len(changes) > 1:
            return combined(changes, note)
        return Changes(changes[0].added, changes[0].removed, {**changes[0].note, **note})

    def restore(self, changes: Changes) -> None:
        changed = separated(changes) if len(self.stores) > 1 else [changes]
        for store, own in zip(self.stores, changed, strict=True):
            store.restore(own)
        for name in self.noted:
            setattr(self, f"_{name}", changes.note[name])
