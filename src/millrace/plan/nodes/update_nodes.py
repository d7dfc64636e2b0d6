"""The nodes of update queries (002 section 3.2): queues of updates, and what stands above them.

Rules:
- A queue belongs to one query: its `query` is part of what it is, so that two queries never share one.
- Policy, budget and memory of a queue are settings (kernel/updates/queue_settings.py): they can change while it runs,
  so they are no fields of its node.
- The language does not make these nodes; updates/queue_placement.py puts them into the trees of queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.join_nodes import AnyJoin
from millrace.plan.nodes.node import Keys, Node, SeveralInputs
from millrace.plan.nodes.relational_nodes import renamed_by

UpdateWindow = Literal["lazy", "eager", "every", "random"]
Closing = Literal["bound", "own"]


@dataclass(frozen=True)
class AnyQueue(SeveralInputs):
    """The rows of all inputs through one queue, by their update key; the inputs' columns agree in name and type."""

    key: Keys | None
    query: str
    state_words: ClassVar[str] = "the rows that wait"

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [list(dict.fromkeys([*wanted, *(self.key or ())])) for _ in self.inputs]

    def spread_keys(self, position: int) -> Keys | None:
        return self.key


@dataclass(frozen=True)
class UpdateQueue(AnyQueue):
    """A queue of rows by their update key.

    `key` is () where all rows are updates of one thing, and None over a plain stream, where no row updates another:
    its policy is then append or append_shed. `truth` is the input that wins where two have rows of one key and time.
    """

    truth: int | None = None

    @property
    def keeps_entry(self) -> bool:
        return len(self.inputs) == 1 and self.inputs[0].keeps_entry


@dataclass(frozen=True)
class WindowQueue(AnyQueue):
    """A queue of windows per update key: the rows of windows that it commits to, with the number of the commitment.

    Windows are `[start, start + range)`, start a multiple of `slide` from `origin` on.
    """

    key: Keys
    range: int
    slide: int
    origin: int = 0
    update_window: UpdateWindow = "eager"
    close: Closing = "bound"
    tick: int = 1
    truth: int | None = None
    state_words: ClassVar[str] = "the rows of windows that wait, by key"


@dataclass(frozen=True)
class MarkedAggregate(Node):
    """A window aggregate above a window queue: it aggregates what the queue has committed to.

    Of a commitment that ends at e it reports its windows in `[e - span, e)`.
    """

    aggregate: Aggregate
    span: int
    state_words: ClassVar[str] = "a partial result per group of the windows that the queue has committed to"

    def children(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_children(self, children: Sequence[Node]) -> Self:
        return replace(self, aggregate=self.aggregate.with_children(children))

    @property
    def input(self) -> Node:
        """What it reads."""
        return self.aggregate.input

    @property
    def schema(self) -> pa.Schema:
        return self.aggregate.schema

    def column_names(self) -> list[str]:
        return self.aggregate.column_names()

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return self.aggregate.reads(wanted)

    def renamed(self, columns: Keys) -> Keys | None:
        return renamed_by(self.aggregate.keys, columns)


@dataclass(frozen=True)
class AnyUpdateJoin(AnyJoin):
    """The latest rows of all inputs that have equal keys.

    Rows of other inputs are at most `within[i]` after one of input i (None: no limit). `residual` is a condition on the
    joined columns beside these.
    """

    keys: tuple[Keys, ...]
    within: tuple[int | None, ...] = (None, None)
    residual: Expression | None = None
    state_words: ClassVar[str] = "the latest row of each key and input, while it can match"

    def expressions(self) -> tuple[Expression, ...]:
        return () if self.residual is None else (self.residual,)

    def matched_by(self, position: int) -> Sequence[str]:
        return self.keys[position]

    def spread_keys(self, position: int) -> Keys | None:
        return self.keys[position]


@dataclass(frozen=True)
class UpdateJoin(AnyUpdateJoin):
    """A join that gives results as rows come; of a batch only the latest row of a key counts."""


@dataclass(frozen=True)
class TimedUpdateJoin(AnyUpdateJoin):
    """A join in order of time: at each time at which an input has a row, the latest rows up to then."""


@dataclass(frozen=True)
class OuterUpdateJoin(AnyUpdateJoin):
    """A join of two inputs, where rows of input `kept` that match none are given with nulls.

    They come as rows come, or `timed`, in order of time.
    """

    kept: int = 0
    timed: bool = False

    def gives_keys_of(self, position: int) -> bool:
        return position == self.kept
