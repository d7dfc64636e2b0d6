"""Scans of streams, and the nodes that neither join nor aggregate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import pyarrow as pa

from millrace.kernel.columns.expressions import Column, Expression
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.progress.open_windows import open_windows
from millrace.kernel.progress.quarantine import QUARANTINE
from millrace.kernel.progress.released import COLUMNS
from millrace.kernel.progress.time_contract import QUARANTINED
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.node import UNTIL_THEIR_TIME, Keys, Node, OneInput, SeveralInputs, columns_of, walk


@dataclass(frozen=True)
class Scan(Node):
    """The rows of a declared stream.

    `outlet` says what their progressing attribute is: "" the stream's own time, a further declared time column,
    `SEQUENCE`, `LATE` for the late rows, or `QUARANTINED` for those, which have columns of their own; or, for the
    stream's own time, which windows take rows below its bound.
    """

    stream: Stream
    outlet: str = ""
    is_row_wise: ClassVar[bool] = True

    @property
    def schema(self) -> pa.Schema:
        return QUARANTINE if self.outlet == QUARANTINED else self.stream.schema

    def column_names(self) -> list[str]:
        return list(self.schema.names)

    @property
    def name(self) -> str:
        """The name under which a query reads its rows."""
        return self.stream.aside().get(self.outlet, self.stream.name)

    @property
    def has_other_time(self) -> bool:
        """True if its rows do not come by the stream's own time."""
        return bool(self.outlet) and open_windows(self.outlet) is None

    @property
    def source(self) -> str:
        """The name of its source in a graph: its stream, or an outlet of it."""
        return f"{self.stream.name}@{self.outlet.strip('_')}" if self.outlet else self.stream.name


@dataclass(frozen=True)
class Filter(OneInput):
    """The rows where `predicate` is true (not false, not null)."""

    predicate: Expression
    is_row_wise: ClassVar[bool] = True

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [columns_of([self.predicate], wanted)]

    def expressions(self) -> tuple[Expression, ...]:
        return (self.predicate,)


@dataclass(frozen=True)
class Project(OneInput):
    """Named expressions over each row."""

    columns: tuple[tuple[str, Expression], ...]
    is_row_wise: ClassVar[bool] = True

    @property
    def schema(self) -> pa.Schema:
        given = self.input.schema
        return pa.schema([(name, expression.type_in(given)) for name, expression in self.columns])

    def column_names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        names = set(wanted)
        return [columns_of(each for name, each in self.columns if name in names)]

    def expressions(self) -> tuple[Expression, ...]:
        return tuple(each for _, each in self.columns)

    def renamed(self, columns: Keys) -> Keys | None:
        return renamed_by(self.columns, columns)

    def read_as(self, columns: Keys) -> Keys | None:
        read = {name: each.name for name, each in self.columns if isinstance(each, Column)}
        return tuple(read[name] for name in columns) if all(name in read for name in columns) else None


@dataclass(frozen=True)
class Explode(OneInput):
    """A row per element of an array, with the columns `kept` of the row; with `outer` at least one."""

    array: Expression
    element: str
    position: str | None
    outer: bool
    kept: Keys
    is_row_wise: ClassVar[bool] = True
    sql_name: ClassVar[str] = "explode"
    no_update = ("explode", "a row gives several results, of which the last would replace the others")

    @property
    def schema(self) -> pa.Schema:
        given = self.input.schema
        made = [pa.field(self.element, self.array.type_in(given).value_type)]
        made += [] if self.position is None else [pa.field(self.position, pa.int32())]
        return pa.schema([*(given.field(name) for name in self.kept), *made])

    def column_names(self) -> list[str]:
        return [*self.kept, self.element, *([] if self.position is None else [self.position])]

    def narrowed(self, wanted: Sequence[str]) -> Explode:
        """The node without columns that are not wanted: an array would be copied for each of its elements."""
        return replace(self, kept=tuple(name for name in self.kept if name in wanted))

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [columns_of([self.array], self.kept)]

    def expressions(self) -> tuple[Expression, ...]:
        return (self.array,)

    def renamed(self, columns: Keys) -> Keys | None:
        return columns if all(name in self.kept for name in columns) else None

    read_as = renamed


def renamed_by(given: Sequence[tuple[str, Expression]], columns: Keys) -> Keys | None:
    """The names under which expressions hold some columns as they are; None if one is lost."""
    names = {each.name: name for name, each in given if isinstance(each, Column)}
    return tuple(names[name] for name in columns) if all(name in names for name in columns) else None


@dataclass(frozen=True)
class Union(SeveralInputs):
    """All rows of all inputs (a bag union). The inputs' columns agree in name and type.

    `truth` is the input that wins where two are updates of one key at one time; only update queries ask for it.
    """

    truth: int | None = field(default=None, repr=False)
    is_cut_below: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = False


@dataclass(frozen=True)
class _Ordered(OneInput):
    """A sequence of all rows, so that they must meet; with a union below it is one operator."""

    state_words: ClassVar[str] = UNTIL_THEIR_TIME

    def operands(self) -> tuple[Node, ...]:
        return self.input.children() if isinstance(self.input, Union) else (self.input,)

    def with_operands(self, operands: Sequence[Node]) -> Self:
        if isinstance(self.input, Union):
            return self.with_children([self.input.with_children(operands)])
        return self.with_children(operands)

    def spread_keys(self, position: int) -> Keys | None:
        return ()


@dataclass(frozen=True)
class OrderByTime(_Ordered):
    """The rows as a sequence sorted by their own time."""

    sql_name: ClassVar[str] = "ORDER BY"
    no_update = ("ORDER BY", "each result replaces the one before of its key, so that there is no sequence to order")


@dataclass(frozen=True)
class OrderByColumns(OrderByTime):
    """The same, with rows of equal time sorted by columns; `further` says of each whether it falls."""

    further: tuple[tuple[str, bool], ...] = ()

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [list(dict.fromkeys([*wanted, *(name for name, _ in self.further)]))]


@dataclass(frozen=True)
class Numbered(_Ordered):
    """The rows of a union under one sequence: by time, then input, then order in the input.

    The number, from 0 on, is their progressing attribute from here on.
    """

    sql_name: ClassVar[str] = "a window of ROWS"


@dataclass(frozen=True)
class Distinct(OneInput):
    """Each row once; equal rows have equal times, so a row is forgotten when the bound passes its time."""

    sql_name: ClassVar[str] = "DISTINCT"
    no_update = ("DISTINCT", "a row that is left out as a repetition would not replace the one before it")
    state_words: ClassVar[str] = UNTIL_THEIR_TIME

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [self.column_names()]

    def spread_keys(self, position: int) -> Keys | None:
        return tuple(self.column_names())


@dataclass(frozen=True)
class Rank(OneInput):
    """Rows of equal time and partition, ranked among each other; those beyond `limit` are left out.

    `order` names columns, each with True if it is descending. The rank is the last column, under `name`.
    """

    function: Literal["row_number", "rank", "dense_rank"]
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    name: str
    limit: int | None = None
    sql_name: ClassVar[str] = "a rank"
    no_update = ("a rank", "it compares rows of different keys, which replace each other at different times")
    state_words: ClassVar[str] = UNTIL_THEIR_TIME

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema.append(pa.field(self.name, pa.int64()))

    def column_names(self) -> list[str]:
        return [*self.input.column_names(), self.name]

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        if self.function == "row_number":
            # Ties are broken by all columns.
            return [self.input.column_names()]
        read = (*wanted, *self.partition, *(name for name, _ in self.order))
        return [[name for name in dict.fromkeys(read) if name != self.name]]

    def spread_keys(self, position: int) -> Keys | None:
        return self.partition


@dataclass(frozen=True)
class Since(OneInput):
    """The rows whose own time is not before `time`: where a query begins that was added while others ran."""

    time: int
    is_row_wise: ClassVar[bool] = True


@dataclass(frozen=True)
class Released(OneInput):
    """The rows of a query, with what released each: the stream, how its promise came about, the bound and the clock."""

    is_cut_below: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = False

    @property
    def schema(self) -> pa.Schema:
        by_number = any(scan.stream.time.unit == "number" for scan in scans_of(self))
        types = (pa.string(), pa.string(), pa.int64() if by_number else TIMESTAMP, TIMESTAMP)
        return pa.schema([*self.input.schema, *zip(COLUMNS, types, strict=True)])

    def column_names(self) -> list[str]:
        return [*self.input.column_names(), *COLUMNS]

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [[name for name in wanted if name not in COLUMNS]]


@dataclass(frozen=True)
class RollUp(OneInput):
    """The rows of a stream with a promise per group, under one bound for all: the least of the groups seen."""

    keeps_rows: ClassVar[bool] = False
    state_words: ClassVar[str] = "the bound of each group"

    @property
    def keeps_entry(self) -> bool:
        return self.input.keeps_entry


@dataclass(frozen=True)
class Slack(OneInput):
    """The rows with a bound made of the rows alone: the greatest time so far less `slack` (004 section 2, option 2)."""

    slack: int
    is_cut_below: ClassVar[bool] = True


@dataclass(frozen=True)
class RowSlack(OneInput):
    """The same by a number of rows: the bound is the greatest time of all rows but the last `rows`."""

    rows: int
    is_cut_below: ClassVar[bool] = True


def scan_of(prefix: Node) -> Scan:
    """The scan at the bottom of a prefix."""
    scan = next(walk(prefix))
    assert isinstance(scan, Scan)
    return scan


def scans_of(node: Node) -> list[Scan]:
    """All scans of a tree, those of the first inputs first."""
    return [each for each in walk(node) if isinstance(each, Scan)]


def is_latent(node: Node) -> bool:
    """True if rows have no time yet: latent ones, before the first operator that needs one."""
    if isinstance(node, Scan):
        time = node.stream.time
        return (time.outlet(node.outlet) if node.outlet else time).kind == "latent"
    return (node.is_row_wise or isinstance(node, Union | OrderByTime)) and all(map(is_latent, node.children()))


def below_maps(node: Node) -> Node:
    """What stands below filters and projections."""
    while isinstance(node, Filter | Project):
        node = node.input
    return node
