"""The facts about waiting: how far streams have come, which queries wait for them, and which queues are behind.

Rules:
- All of it is plain data: `asdict` gives what JSON can hold, and `read` takes it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from millrace.kernel.elements import Microseconds
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.order import PartitionState
from millrace.plan.explain.labels import contract_text

_SLOWEST = 3
"""How many partitions of a stream are named."""


@dataclass(frozen=True)
class StreamLag:
    """How far a stream has come, and what its contract says of it."""

    bound: Microseconds
    moved_at: Microseconds
    """The clock when its bound last advanced."""
    greatest: Microseconds
    seen_at: Microseconds
    """The clock when its greatest time came."""
    kind: str
    contract: str
    """All of its contract, in words."""
    disorder: Microseconds = 0
    rows: int | None = None
    promise: str | None = None
    partitions: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    ets: str = "none"
    skew: Microseconds | None = None
    silent: bool | None = None
    """True if it had no row when it was last read; None where that is not known."""
    slowest: tuple[PartitionState, ...] = ()
    """Its partitions or groups that are furthest behind, the last first."""
    parts: int = 0
    """How many of them there are."""
    unit: Literal["time", "number"] = "time"

    @staticmethod
    def of(edge: Ingress, silent: bool | None) -> StreamLag:
        """A stream as its edge knows it."""
        contract = edge.contract
        return StreamLag(
            edge.bound,
            edge.moved_at,
            edge.greatest,
            edge.seen_at,
            contract.kind,
            contract_text(contract),
            contract.disorder,
            contract.rows,
            None if contract.punctuation is None else str(contract.punctuation),
            contract.partitions,
            contract.per,
            contract.ets,
            contract.skew,
            silent,
            tuple(edge.order.slowest(_SLOWEST)),
            edge.order.parts,
            contract.unit,
        )

    def parts_behind(self, awaited: Awaited) -> list[PartitionState]:
        """Its partitions or groups, of those that are known, that hold it back, the one furthest behind first."""
        return [] if awaited.outlet else [each for each in self.slowest if each.bound < awaited.until]

    @staticmethod
    def read(data: Mapping[str, Any]) -> StreamLag:
        """A stream from plain data."""
        named = {name: tuple(data[name]) for name in ("partitions", "per")}
        slowest = tuple(PartitionState(**{**each, "values": tuple(each["values"])}) for each in data["slowest"])
        return StreamLag(**{**data, **named, "slowest": slowest})


@dataclass(frozen=True)
class Awaited:
    """A stream, or an outlet of it, that must reach `until` before something is released."""

    stream: str
    outlet: str
    until: Microseconds
    bound: Microseconds
    moved_at: Microseconds
    ets_at: Microseconds | None = None
    """The clock at which an ETS would be enough, if it stays silent; None is never."""
    unit: Literal["time", "number"] = "time"


@dataclass(frozen=True)
class Wait:
    """What a query holds, and the streams that it waits for, the one that holds it back first."""

    held: int
    awaited: tuple[Awaited, ...]
    partials: int = 0
    """How many of what it holds are partial results, each of any number of rows."""


@dataclass(frozen=True)
class Queued:
    """What waits in the queues of a query, because the work behind them is slower than the updates come."""

    waiting: int
    oldest: Microseconds
    """For how long the one that waits longest has waited."""
    keyed: bool = True
    """True if a key waits with its newest row alone."""

    def __add__(self, other: Queued) -> Queued:
        return Queued(self.waiting + other.waiting, max(self.oldest, other.oldest), self.keyed and other.keyed)
