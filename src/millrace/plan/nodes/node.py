"""The base of all nodes of a query's tree: what every part of a plan asks of a node.

Rules:
- What is true of a node type stands with it: what it reads, which columns it gives, how its rows must be spread, what
  it keeps, why it has no update key. A new node type answers these questions in its own class.
- Two tables stand elsewhere: which kernel operator carries out a node (physical/operator_choice.py), and the words for
  its fields (explain/labels.py).
- The repr of a node is part of the name of its operator, by which saved state is found again: classes and fields keep
  their names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression

Keys = tuple[str, ...]

UNTIL_THEIR_TIME = "rows until the bound passes their time"
"""What most operators keep, in words."""


class Node(ABC):
    """A part of a query's tree: rows, made of the rows of its children."""

    is_row_wise: ClassVar[bool] = False
    """True if each row is made of one row of the child, or read from a stream, at once and without state."""

    is_cut_below: ClassVar[bool] = False
    """True if no rows need to meet in its operator, so that a cut for Spark goes below it."""

    keeps_rows: ClassVar[bool] = True
    """True if its operator remembers rows, where no option of the query says otherwise; row-wise ones never do."""

    depends_on: ClassVar[tuple[str, ...]] = ()
    """The options of a query, beside the order, that change what its operator is."""

    sql_name: ClassVar[str] = "this"
    """What a refusal calls it."""

    no_update: ClassVar[tuple[str, str]] = ("", "")
    """What has no meaning over update streams, and why, if its rows have no update key."""

    state_words: ClassVar[str] = ""
    """What it keeps, and until when, in words; "" if nothing, or if its own fields decide it."""

    def children(self) -> tuple[Node, ...]:
        """The nodes that it reads."""
        return ()

    def with_children(self, children: Sequence[Node]) -> Self:
        """The node over other children."""
        assert not children
        return self

    def map_children(self, rewrite: Callable[[Node], Node]) -> Self:
        """The node over its rewritten children."""
        return self.with_children([rewrite(each) for each in self.children()])

    def operands(self) -> tuple[Node, ...]:
        """What its operator reads: its children, but for nodes that are one operator with the union below them."""
        return self.children()

    def with_operands(self, operands: Sequence[Node]) -> Self:
        """The node over other operands."""
        return self.with_children(operands)

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns that it gives."""

    @abstractmethod
    def column_names(self) -> list[str]:
        """The names of its columns; that is much less work than its schema."""

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        """For each child the columns that it reads to give the wanted ones."""
        return [list(wanted) for _ in self.children()]

    def expressions(self) -> tuple[Expression, ...]:
        """All that is computed per row."""
        return ()

    def spread_keys(self, position: int) -> Keys | None:
        """The columns of a child whose equal values must meet in one bucket; None if rows may be spread in any way."""
        return None

    def gives_keys_of(self, position: int) -> bool:
        """True if each row has the spread keys of a child: not if it may be a row of another one without a match."""
        return True

    def renamed(self, columns: Keys) -> Keys | None:
        """The names that it gives to columns of its child; None if it drops one."""
        return columns

    def read_as(self, columns: Keys) -> Keys | None:
        """What its child calls columns that it gives; None if it computes one."""
        return columns

    @property
    def is_prefix(self) -> bool:
        """True for a scan under row-wise nodes alone: the stateless beginning of a tree."""
        return self.is_row_wise and all(each.is_prefix for each in self.children())

    @property
    def keeps_entry(self) -> bool:
        """True if rows come in the order in which they entered: a prefix, also rolled up or behind an append queue.

        Joins that ask have no other queues below them.
        """
        return self.is_row_wise and all(each.keeps_entry for each in self.children())


@dataclass(frozen=True)
class OneInput(Node):
    """A node with one child, whose columns it gives if it does not say otherwise."""

    input: Node

    def children(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_children(self, children: Sequence[Node]) -> Self:
        (input,) = children
        return replace(self, input=input)

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    def column_names(self) -> list[str]:
        return self.input.column_names()


@dataclass(frozen=True)
class SeveralInputs(Node):
    """A node with several children, which have the same columns if it does not say otherwise."""

    inputs: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        return self.inputs

    def with_children(self, children: Sequence[Node]) -> Self:
        return replace(self, inputs=tuple(children))

    @property
    def schema(self) -> pa.Schema:
        return self.inputs[0].schema

    def column_names(self) -> list[str]:
        return self.inputs[0].column_names()


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it, children first."""
    for child in node.children():
        yield from walk(child)
    yield node


def columns_of(expressions: Iterable[Expression], also: Iterable[str] = ()) -> list[str]:
    """The columns that expressions read, and others, each once."""
    return list(dict.fromkeys([*also, *(name for each in expressions for name in each.columns())]))
