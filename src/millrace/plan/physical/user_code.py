"""The functions of the user's own that a network calls, imported before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.user_functions import UserCall, UserFunction, loaded
from millrace.plan.nodes.network import Aggregate, Filter, Network, Node, Project, Scan, walk


def load_functions(network: Network) -> None:
    """Import all functions that queries call; refuses one that cannot be called as declared."""
    for function in functions_of(network):
        loaded(function)


def functions_of(network: Network) -> list[UserFunction]:
    """The functions that queries call, each once."""
    calls = (
        part
        for query in network.queries
        for root in (query.root, query.tree)
        if root is not None
        for node in walk(root)
        for expression in _expressions(node)
        if expression.calls_user_code
        for part in expression.parts()
        if isinstance(part, UserCall)
    )
    return list(dict.fromkeys(call.function for call in calls))


def _expressions(node: Node) -> Iterator[Expression]:
    """All that is computed for rows at a node."""
    match node:
        case Scan():
            if node.stream.time.punctuation is not None:
                yield node.stream.time.punctuation
        case Filter():
            yield node.predicate
        case Project():
            yield from (each for _, each in node.columns)
        case Aggregate():
            yield from node.expressions()
        case _:
            residual: Expression | None = getattr(node, "residual", None)
            if residual is not None:
                yield residual
