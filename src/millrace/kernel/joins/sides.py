"""What a join is told of its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JoinTime = int | Literal["max", "min"]
"""Which time joined rows have: that of an input, by its position, or the latest or the earliest of all."""


@dataclass(frozen=True)
class Side:
    """How rows of one input of a join match rows of the others.

    Those whose keys are equal (null equals nothing), and whose time is at most `ahead` after the row's own time and
    at most what its column `until` says, a TIMESTAMP. One of the two is there, so that no row is kept for ever. What
    the time may be before the row's own follows from the other sides.
    """

    keys: tuple[str, ...] = ()
    ahead: int | None = None
    until: str | None = None
    outer: bool = False
    """True if rows that match nothing are emitted too, with nulls for the other side; only of two inputs."""


@dataclass(frozen=True)
class RowsSide:
    """One input of a join by rows: the window that it keeps, if it keeps one.

    The last `rows` rows, of each partition if there is one, by time and then entry; or those at most `range` old.
    """

    keys: tuple[str, ...] = ()
    rows: int | None = None
    range: int | None = None
    partition: tuple[str, ...] = ()
