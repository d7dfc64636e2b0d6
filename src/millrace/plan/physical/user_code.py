"""The functions of the user's own that a network calls, imported before anything runs."""

from __future__ import annotations

from millrace.kernel.columns.user_functions import UserCall, UserFunction, loaded
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import Network


def load_functions(network: Network) -> None:
    """Import all functions that queries call; refuses one that cannot be called as declared."""
    for function in functions_of(network):
        loaded(function)


def functions_of(network: Network) -> list[UserFunction]:
    """The functions that queries and the time contracts of their streams call, each once."""
    roots = (root for query in network.queries for root in (query.root, query.tree) if root is not None)
    computed = [each for root in roots for node in walk(root) for each in node.expressions()]
    promised = [each.time.punctuation for each in network.streams() if each.time.punctuation is not None]
    parts = (part for each in (*computed, *promised) if each.calls_user_code for part in each.parts())
    return list(dict.fromkeys(part.function for part in parts if isinstance(part, UserCall)))
