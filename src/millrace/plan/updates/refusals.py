"""What has no meaning where rows replace each other, and how it is refused."""

from __future__ import annotations

from millrace.errors import Place, RequestError
from millrace.plan.nodes.aggregate_nodes import (
    AnyWindow,
    CalendarWindow,
    DividedWindow,
    InstantWindow,
    PairWindow,
    PartitionedRows,
    SessionWindow,
    TrailingWindow,
    Window,
)
from millrace.plan.nodes.join_nodes import Following, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Distinct, Numbered, OrderByTime, Rank

APPEND = "read with WITH (queue = 'append'), which answers over all rows"
"""What to do instead, after "let the query"."""

_WINDOWS: tuple[tuple[type, str], ...] = (
    (SessionWindow, "a session"),
    (TrailingWindow, "a window that ends at each row"),
    (PartitionedRows, "a window of ROWS"),
    (CalendarWindow, "a window of the calendar"),
    (DividedWindow, "a window by a quotient"),
    (InstantWindow, "GROUP BY a time"),
    (PairWindow, "GROUP BY a pair of times"),
    (Window, "a window of ROWS"),
)
_NODES: tuple[tuple[type, str], ...] = (
    (Distinct, "DISTINCT"),
    (Rank, "a rank"),
    (OrderByTime, "ORDER BY"),
    (Numbered, "a window of ROWS"),
    (RowsJoin, "a join by ROWS"),
    (Following, "an as-of join or a sequence"),
)


class NotAnUpdate(RequestError):
    """Something in a query has no update semantics.

    `node` is where in its tree, and `part` what of that node, for the language to find it in the text.
    """

    def __init__(
        self, fact: str, *, hint: str, node: Node | None = None, part: str = "", place: Place | None = None
    ) -> None:
        super().__init__(fact, hint=hint, place=place)
        self.node = node
        self.part = part


def meaningless(what: str, node: Node, instead: str = "Leave it out") -> NotAnUpdate:
    """The refusal of something that updates have no use for."""
    return NotAnUpdate(
        f"{what} has no meaning over update streams", hint=f"{instead}, or let the query {APPEND}.", node=node
    )


def window_words(window: AnyWindow) -> str:
    """What a window that is none of time by range and slide is called."""
    return next(words for kind, words in _WINDOWS if isinstance(window, kind))


def node_words(node: Node) -> str:
    """What a node without update semantics is called."""
    return next(words for kind, words in _NODES if isinstance(node, kind))
