"""What a stream promises about its timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.elements import PARTITION, Microseconds
from millrace.kernel.progress.open_windows import open_windows
from millrace.kernel.progress.order import Order, PartitionValues, Punctuated, TrailingRows
from millrace.kernel.progress.partitioned_order import Partitioned, PerGroup

TimeKind = Literal["external", "internal", "latent"]
EtsKind = Literal["none", "periodic", "on_demand"]

SEQUENCE = "__sequence"
"""The outlet where a row's time is the number under which it was admitted, from 0 on."""
LATE = "__late"
"""The outlet of late rows; their time is the clock at which they came."""
QUARANTINED = "__quarantined"
"""The outlet of rows that were quarantined, with their place and reason; their time is the clock as well."""
ASIDE = (LATE, QUARANTINED)
"""The outlets of rows that were set aside."""


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """The table that lists the partitions of a stream, and its columns that hold their values."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimeContract:
    """What a stream promises about its timestamps.

    `column` names the time column (external: read from it; internal: written to it; latent: None).
    The order of an external stream: `disorder` is how far a row may trail the greatest timestamp before it (0:
    ordered), `rows` by how many rows it may trail instead, `punctuation` what the source itself promises instead.
    With `partitions` the order holds in each partition, and the stream's bound is the least of theirs; with `per` a
    promise is for the rows of its own group alone. `also` are further columns that progress, each with its disorder.
    `ets` says how enabling timestamps are made for a silent stream (latent: on demand, silent or not), `every` how
    often if periodically; `skew` is the delta of the external formula, `lull` how far a silent stream may be behind
    the clock (see ets.py). `max_future_skew` is how far ahead a row may be. With `late_by_window` a row below the bound
    is late only if no reader has an open window for it: the outlet that an operator reads says so, and names it.
    `declared` are partitions that the stream waits for before they have sent a row; with a `grace` its bound does not
    rise until a partition has sent rows over so much of its time, so that others may turn up. `listed_in` is the table
    that declares them instead: the host that reads it says which there are.
    `computed` are columns that rows get when they come, of those before them; `layout` is the order of all.
    With unit number the column is a BIGINT: all lengths are numbers too, and the clock says nothing about it.
    """

    kind: TimeKind
    column: str | None = None
    disorder: Microseconds = 0
    ets: EtsKind = "none"
    skew: Microseconds | None = None
    rows: int | None = None
    punctuation: Expression | None = None
    partitions: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    also: tuple[tuple[str, Microseconds], ...] = ()
    every: Microseconds | None = None
    lull: Microseconds | None = None
    max_future_skew: Microseconds | None = None
    computed: tuple[tuple[str, Expression], ...] = ()
    layout: tuple[str, ...] = field(default=(), repr=False)
    late_by_window: bool = field(default=False, repr=False)
    declared: tuple[PartitionValues, ...] = field(default=(), repr=False)
    listed_in: PartitionTable | None = field(default=None, repr=False)
    grace: Microseconds | None = field(default=None, repr=False)
    unit: Literal["time", "number"] = field(default="time", repr=False)

    def __repr__(self) -> str:
        # Names of operators are made of it: they stay as they are where nothing is computed.
        shown = [each.name for each in fields(self) if each.repr and (each.name != "computed" or self.computed)]
        return f"TimeContract({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def columns(self) -> Iterator[str]:
        """The columns that the contract is about."""
        if self.column is not None:
            yield self.column
        if self.punctuation is not None:
            yield from self.punctuation.columns()
        yield from self.partitions
        yield from self.per
        yield from (column for column, _ in self.also)

    def untuned(self) -> TimeContract:
        """The contract without its tunings: what says how the bound rises, and which rows are too far ahead.

        Tunings decide which rows are late or quarantined, and when results come. No operator computes anything of them,
        so they may change under saved state.
        """
        return replace(
            self,
            disorder=0,
            rows=None,
            punctuation=None,
            also=tuple((column, 0) for column, _ in self.also),
            ets="none",
            every=None,
            skew=None,
            lull=None,
            max_future_skew=None,
            declared=(),
            listed_in=None,
            grace=None,
        )

    def by_source_partition(self) -> TimeContract:
        """The same order in each partition of the source, unless the contract says itself where it holds."""
        own = self.partitions or self.per or self.rows is not None or self.kind != "external"
        return self if own else replace(self, partitions=(PARTITION,))

    def order(self) -> Order:
        """How the rows let the bound rise, with nothing seen yet."""
        if self.per:
            assert self.punctuation is not None
            return PerGroup(self.per, self.punctuation)
        if self.partitions:
            declared = None if self.partitions == (PARTITION,) else self.declared
            return Partitioned(self.partitions, self.disorder, self.punctuation, declared, self.grace)
        if self.punctuation is not None:
            return Punctuated(self.punctuation)
        return Order(self.disorder) if self.rows is None else TrailingRows(self.rows)

    def outlet(self, name: str) -> TimeContract:
        """What holds for the rows of an outlet: a further column, their sequence numbers, or rows set aside."""
        if open_windows(name):
            return self
        if name in ASIDE:
            return TimeContract("latent", ets="on_demand")
        if name == SEQUENCE:
            return TimeContract("external")
        ordered = TimeContract("external", name, dict(self.also)[name], unit=self.unit)
        return replace(ordered, ets=self.ets, skew=self.skew, every=self.every, lull=self.lull)
