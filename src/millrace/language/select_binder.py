"""Binds the select list and QUALIFY: beside the columns, names of the list itself and the rank."""

from __future__ import annotations

from sqlglot import exp

from millrace.language.expressions import ExpressionBinder
from millrace.language.places import Source
from millrace.language.ranks import Ranks
from millrace.language.scopes import Scope
from millrace.language.statements import Select
from millrace.language.typed import Typed


class SelectBinder(ExpressionBinder):
    """Binds expressions of a select; `aliases` are known once its list has been bound."""

    def __init__(self, source: Source, scope: Scope, ranks: Ranks) -> None:
        super().__init__(source, scope)
        self.ranks = ranks
        self.aliases: dict[str, exp.Expr] = {}

    def know_aliases(self, select: Select) -> None:
        """From now on the names of the select list may be used."""
        self.aliases = {item.alias.text.lower(): item.expression for item in select.items if item.alias is not None}

    def is_alias(self, node: exp.Column) -> bool:
        """Whether a node is a name of the select list, and no column."""
        return not node.table and self.scope.find(node.name) is None and node.name.lower() in self.aliases

    def column(self, node: exp.Column) -> Typed:
        return self.bind(self.aliases[node.name.lower()]) if self.is_alias(node) else super().column(node)

    def over(self, node: exp.Window) -> Typed:
        return self.ranks.column(self, node)
