"""Refusals of what has no update semantics, with the reason, or of what is not supported yet."""

from __future__ import annotations

from millrace.errors import Place, RequestError
from millrace.plan.nodes.join_nodes import RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Scan

APPEND = "read with WITH (queue = 'append'), which answers over all rows"
"""What to do instead, after "let the query"."""


class NoUpdateSemantics(RequestError):
    """Something in a query has no meaning where rows replace each other.

    `node` is where in its tree, and `part` what of that node, for the language to find it in the text.
    """

    def __init__(
        self, fact: str, *, hint: str, node: Node | None = None, part: str = "", place: Place | None = None
    ) -> None:
        super().__init__(fact, hint=hint, place=place)
        self.node = node
        self.part = part


def meaningless(what: str, why: str, node: Node) -> NoUpdateSemantics:
    """The refusal of something that is only for rows that do not replace each other."""
    fact = f"{what} has no meaning over update streams: {why}"
    return NoUpdateSemantics(fact, hint=f"Leave it out, or let the query {APPEND}.", node=node)


def not_yet(what: str, node: Node, instead: str) -> NoUpdateSemantics:
    """The refusal of something that has a meaning and is not built."""
    hint = f"{instead}, or let the query {APPEND}."
    return NoUpdateSemantics(f"{what} is not supported yet over update streams", hint=hint, node=node)


def refusal(node: Node) -> NoUpdateSemantics:
    """Why rows of a node have no update key."""
    if isinstance(node, RowsJoin):
        return not_yet("a join by ROWS", node, "Join without a window, or with [RANGE 5 MINUTES]")
    if not isinstance(node, Scan):
        assert all(node.no_update), "rows of all other nodes have the key of what they read"
        return meaningless(*node.no_update, node)
    name = node.name
    return NoUpdateSemantics(
        f'rows of "{name}" have no key, so that none replaces another',
        hint=f'Declare UPDATE KEY for "{name}", aggregate its rows by GROUP BY, or let the query {APPEND}.',
        node=node,
    )
