"""The nodes of update queries (002 section 3.2): queues of updates, and what stands above them.

Rules:
- A queue belongs to one query: its `query` is part of what it is, so that two queries never share one.
- By which policy it lets go, how much, and how it keeps rows are settings (kernel/queue_settings.py): they can change
  under a running queue, and are not among what it is.
- The language does not make these nodes; updating.py puts them into the trees of queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression

if TYPE_CHECKING:
    from millrace.plan.nodes.network import Aggregate, Node

UpdateWindow = Literal["lazy", "eager", "every", "random"]
Closing = Literal["bound", "own"]


@dataclass(frozen=True)
class UpdateQueue:
    """The rows of all inputs through one queue, by their update key; the inputs' columns agree in name and type.

    `key` is () where all rows are updates of one thing, and None over a plain stream, where no row updates another:
    its policy is then append or append_shed. `truth` is the input that wins where two have rows of one key and time.
    """

    inputs: tuple[Node, ...]
    key: tuple[str, ...] | None
    query: str
    truth: int | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.inputs[0].schema


@dataclass(frozen=True)
class WindowQueue:
    """The same for windows: the rows of the windows that it commits to, each with the number of its commitment.

    Windows are `[start, start + range)`, start a multiple of `slide` from `origin` on.
    """

    inputs: tuple[Node, ...]
    key: tuple[str, ...]
    query: str
    range: int
    slide: int
    origin: int = 0
    update_window: UpdateWindow = "eager"
    close: Closing = "bound"
    tick: int = 1
    truth: int | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.inputs[0].schema


AnyQueue = UpdateQueue | WindowQueue


@dataclass(frozen=True)
class MarkedAggregate:
    """A window aggregate above a window queue: it aggregates what the queue has committed to.

    Of a commitment that ends at e it reports its windows in `[e - span, e)`.
    """

    aggregate: Aggregate
    span: int

    @property
    def input(self) -> Node:
        """What it reads."""
        return self.aggregate.input

    @property
    def keys(self) -> tuple[tuple[str, Expression], ...]:
        """The columns of GROUP BY, as those of an aggregate."""
        return self.aggregate.keys

    @property
    def schema(self) -> pa.Schema:
        return self.aggregate.schema


@dataclass(frozen=True)
class UpdateJoin:
    """The latest rows of two inputs that have equal keys: all columns of both, whose names differ.

    A row of the second is at most `within[0]` after one of the first, which is at most `within[1]` after it (None: no
    limit). `residual` is a condition on the joined columns beside these.
    """

    inputs: tuple[Node, Node]
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    within: tuple[int | None, int | None] = (None, None)
    residual: Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([field for each in self.inputs for field in each.schema])
