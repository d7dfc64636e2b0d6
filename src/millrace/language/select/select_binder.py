"""Binds the select list, HAVING and QUALIFY: beside the columns, names of the list itself and the rank.

Rules:
- Names of the list are known after it, and inside OVER, where the rank itself has none yet.
- What a name stands for is bound as it stands in the list, so a name never leads back to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlglot import exp

from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import Select
from millrace.language.select.ranks import Ranks

Named = Mapping[str, exp.Expr]


class SelectBinder(ExpressionBinder):
    """Binds expressions of a select."""

    def __init__(self, scope: Scope, functions: Functions, ranks: Ranks, select: Select) -> None:
        super().__init__(scope, functions)
        self.ranks = ranks
        self._aliases: Named = {each.alias.text.lower(): each.expression for each in select.items if each.alias}
        self._known: Named = {}
        self._ranked = True

    def having(self, node: exp.Expr) -> Typed:
        """The condition of HAVING, which comes before ranks."""
        self._ranked = False
        with self._knowing(self._aliases):
            found = self.condition(node, "the condition of HAVING")
        self._ranked = True
        return found

    def qualify(self, node: exp.Expr) -> Typed:
        """The condition of QUALIFY."""
        with self._knowing(self._aliases):
            return self.condition(node, "the condition of QUALIFY")

    @contextmanager
    def _knowing(self, names: Named) -> Iterator[None]:
        before, self._known = self._known, names
        try:
            yield
        finally:
            self._known = before

    def is_alias(self, node: exp.Column) -> bool:
        """Whether a node is a name of the select list, and no column."""
        return not node.table and self.scope.find(node.name) is None and node.name.lower() in self._known

    def column(self, node: exp.Column) -> Typed:
        if not self.is_alias(node):
            return super().column(node)
        meant = self._known[node.name.lower()]
        if not self._ranked and meant.find(exp.Window) is not None:
            return super().over(node)
        with self._knowing({}):
            return self.bind(meant)

    def over(self, node: exp.Expr) -> Typed:
        if not self._ranked or not isinstance(node, exp.Window):
            return super().over(node)
        plain = {name: each for name, each in self._aliases.items() if each.find(exp.Window) is None}
        with self._knowing(plain):
            return self.ranks.column(self, node)
