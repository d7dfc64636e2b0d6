"""Joins of a query's tree."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.joins.sides import JoinTime, RowsSide, Side
from millrace.plan.nodes.node import Keys, Node, SeveralInputs, columns_of


class AnyJoin(SeveralInputs):
    """A join: all columns of all inputs, whose names differ."""

    tells_rows_apart: ClassVar[bool] = False
    """True if the order of rows of equal time decides: where it is not that of their entry, all columns decide it."""

    @abstractmethod
    def matched_by(self, position: int) -> Sequence[str]:
        """The columns of an input that decide which rows match."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([field for each in self.inputs for field in each.schema])

    def column_names(self) -> list[str]:
        return [name for each in self.inputs for name in each.column_names()]

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [self._read_of(position, wanted) for position in range(len(self.inputs))]

    def _read_of(self, position: int, wanted: Sequence[str]) -> list[str]:
        """What it reads of one input; all of it where rows of equal time are told apart by what is in them."""
        given = self.inputs[position].column_names()
        if self.tells_rows_apart and not self.inputs[position].keeps_entry:
            return given
        read = columns_of(self.expressions(), [*wanted, *self.matched_by(position)])
        return [name for name in given if name in read]


@dataclass(frozen=True)
class Join(AnyJoin):
    """The rows of all inputs that match each other.

    `residual` is a condition on the joined columns beside keys and times. `joint` asks for promises about pairs of
    times (two inputs).
    """

    sides: tuple[Side, ...]
    residual: Expression | None = None
    time: JoinTime = "max"
    joint: bool = False
    depends_on: ClassVar[tuple[str, ...]] = ("alpha",)

    def expressions(self) -> tuple[Expression, ...]:
        return () if self.residual is None else (self.residual,)

    def matched_by(self, position: int) -> Sequence[str]:
        side = self.sides[position]
        return side.keys if side.until is None else (*side.keys, side.until)

    def spread_keys(self, position: int) -> Keys | None:
        return self.sides[position].keys

    def gives_keys_of(self, position: int) -> bool:
        return not any(side.outer for other, side in enumerate(self.sides) if other != position)


@dataclass(frozen=True)
class RowsJoin(AnyJoin):
    """Each row with the rows of equal keys in the other input's window at its time; a pair once."""

    inputs: tuple[Node, Node]
    sides: tuple[RowsSide, RowsSide]
    residual: Expression | None = None
    tells_rows_apart: ClassVar[bool] = True
    depends_on: ClassVar[tuple[str, ...]] = ("state_limit",)
    sql_name: ClassVar[str] = "a join by ROWS"

    def expressions(self) -> tuple[Expression, ...]:
        return () if self.residual is None else (self.residual,)

    def matched_by(self, position: int) -> Sequence[str]:
        return (*self.sides[position].keys, *self.sides[position].partition)

    def spread_keys(self, position: int) -> Keys | None:
        # Rows are counted by partition, so those of a partition must be together as well.
        counted = [each for each in self.sides if each.rows is not None]
        places = range(len(self.sides[0].keys))
        shared = [place for place in places if all(each.keys[place] in each.partition for each in counted)]
        return tuple(self.sides[position].keys[place] for place in shared)


@dataclass(frozen=True)
class Following(AnyJoin):
    """Each row of the first input with one row of the second that is not after it, of equal keys, `within` at most.

    Mode recent: the last one (an as-of join; `strict`: before it, not at its time); among equal times the one that
    entered last. Mode chronicle: the earliest that no row before has used, one to one. With `outer` rows that have no
    such row are given with nulls.
    """

    inputs: tuple[Node, Node]
    keys: tuple[Keys, Keys]
    mode: Literal["recent", "chronicle"]
    within: int | None = None
    strict: bool = False
    outer: bool = False
    tells_rows_apart: ClassVar[bool] = True
    depends_on: ClassVar[tuple[str, ...]] = ("state_limit",)
    sql_name: ClassVar[str] = "an as-of join or a sequence"
    no_update = ("SEQ MODE CHRONICLE", "it uses each row once, and an update query leaves rows out")

    def matched_by(self, position: int) -> Sequence[str]:
        return self.keys[position]

    def spread_keys(self, position: int) -> Keys | None:
        return self.keys[position]

    def gives_keys_of(self, position: int) -> bool:
        return position == 0 or not self.outer
