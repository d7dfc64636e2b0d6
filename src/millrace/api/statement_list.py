"""The statements of a network so far, parsed once, and what they declare."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millrace.api.sql_text.query_text import script
from millrace.errors import QueryError, RequestError
from millrace.language import bind_script, parse_script
from millrace.language.catalogue import Declarations, declare
from millrace.language.grammar.statements import Declared, Inspected, QueryStatement, SinkStatement, Statement
from millrace.language.script import bind_network
from millrace.plan.evolution.changes import Shown
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import QueryNetwork


class StatementList:
    """Statements that are added as texts, each accepted as a whole or not at all."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._statements: list[Statement] = []
        """What the texts say, parsed once."""
        self._declared = Declarations()
        self._names: set[str] = set()
        """The names of the queries, in lower case."""
        self._roots: dict[str, Node] = {}

    def bound(self) -> QueryNetwork:
        """The plan of all statements."""
        return bind_network(self._statements)

    def root(self, query: str) -> Node:
        """The plan of one query over the network's streams; raises what is wrong with it."""
        if query not in self._roots:
            # Which query it becomes a part of decides whether its rows are updates of each other.
            self._roots[query] = self._alone(parse_script(query), parts=True).queries[-1].root
        return self._roots[query]

    @property
    def script(self) -> str:
        """All statements so far, as SQL."""
        return script(self._texts)

    def shown(self, statement: str) -> pa.Table:
        """The answer to SHOW, DESCRIBE or EXPLAIN, which is not added."""
        answers = bind_script([*self._statements, *parse_script(statement)])[1]
        if not answers:
            raise RequestError(
                f'"{statement}" shows nothing', hint="Write SHOW STREAMS, DESCRIBE name or EXPLAIN SELECT ..."
            )
        return answers[-1].rows

    def accept(self, text: str) -> tuple[Shown, ...]:
        """Add the statements of a text as a whole, or not at all; the answers to SHOW and the like among them."""
        new, answers = parse_script(text), tuple[Shown, ...]()
        if all(map(self._is_independent, new)):
            self._names |= _query_names(self._alone(new))
        else:
            network, answers = bind_script([*self._statements, *new])
            self._names = _query_names(network)
        if any(isinstance(each, Declared) for each in new):
            replaces = any(isinstance(each, Declared) and each.replaces for each in new)
            self._declared = declare([*self._statements, *new]) if replaces else declare(new, self._declared)
            self._roots.clear()
        if any(isinstance(each, QueryStatement) and each.replaces for each in new):
            self._roots.clear()
        self._texts.append(text)
        self._statements += (each for each in new if not isinstance(each, Inspected))
        return answers

    def _is_independent(self, statement: Statement) -> bool:
        """True if the queries so far do not matter to a statement: binding them again takes long if there are many."""
        if isinstance(statement, QueryStatement) and statement.name is not None:
            return statement.name.text.lower() not in self._names and "max_future_skew" not in statement.options
        return isinstance(statement, SinkStatement)

    def _alone(self, statements: Sequence[Statement], *, parts: bool = False) -> QueryNetwork:
        """The plan of some statements without the queries so far."""
        try:
            return bind_network(statements, self._declared, parts=parts)
        except QueryError:
            # Queries so far may be read by name, and an error that knows them says more.
            return bind_network([*self._statements, *statements], parts=parts)


def _query_names(network: QueryNetwork) -> set[str]:
    """The names of the queries that were written; rows set aside that go to a sink are a query of their name, too."""
    aside = {name.lower() for each in network.streams() for name in each.aside().values()}
    return {each.name.lower() for each in network.queries} - aside
