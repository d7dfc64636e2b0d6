"""Joins of a query's tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.joins.sides import JoinTime, RowsSide, Side

if TYPE_CHECKING:
    from millrace.plan.nodes.network import Node


@dataclass(frozen=True)
class Join:
    """The rows of all inputs that match each other: all columns of all inputs, whose names differ.

    `residual` is a condition on the joined columns beside keys and times. `joint` asks for promises about pairs of
    times (two inputs).
    """

    inputs: tuple[Node, ...]
    sides: tuple[Side, ...]
    residual: Expression | None = None
    time: JoinTime = "max"
    joint: bool = False

    @property
    def schema(self) -> pa.Schema:
        return _joined(self.inputs)


@dataclass(frozen=True)
class RowsJoin:
    """Each row with the rows of equal keys in the other input's window at its time; a pair once."""

    inputs: tuple[Node, Node]
    sides: tuple[RowsSide, RowsSide]
    residual: Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        return _joined(self.inputs)


@dataclass(frozen=True)
class Following:
    """Each row of the first input with one row of the second that is not after it, of equal keys, `within` at most.

    Mode recent: the last one (an as-of join; `strict`: before it, not at its time); among equal times the one that
    entered last. Mode chronicle: the earliest that no row before has used, one to one. With `outer` rows that have no
    such row are given with nulls.
    """

    inputs: tuple[Node, Node]
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    mode: Literal["recent", "chronicle"]
    within: int | None = None
    strict: bool = False
    outer: bool = False

    @property
    def schema(self) -> pa.Schema:
        return _joined(self.inputs)


AnyJoin = Join | RowsJoin | Following


def _joined(inputs: Sequence[Node]) -> pa.Schema:
    return pa.schema([field for each in inputs for field in each.schema])
