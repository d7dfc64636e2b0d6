"""The names of a join: those of all inputs, behind the name of each.

A column of a join is called `qualifier.column` inside a plan. In results it keeps its own name, or is called
`qualifier_column` where columns of that name come from several inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, did_you_mean, listed
from millrace.kernel.columns.expressions import Column, Expression
from millrace.language.expressions import typed
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.sql_functions import unknown_column
from millrace.language.expressions.typed import Typed


@dataclass(frozen=True)
class Merged:
    """A column of USING, which results have once: its name, its value, and the columns that it stands for."""

    name: str
    value: Expression
    type: pa.DataType
    columns: frozenset[str]


@dataclass(frozen=True)
class JoinScope(Scope):
    """The columns of several inputs: those of each by its name, in the order of the text."""

    inputs: Mapping[str, Scope] = field(default_factory=dict)
    merged: tuple[Merged, ...] = ()

    def of(self, qualifier: str) -> str | None:
        """The declared spelling of an input's name."""
        return next((each for each in self.inputs if each.lower() == qualifier.lower()), None)

    def find(self, name: str) -> str | None:
        """The inner name of a column that has this name in some input."""
        return next(iter(self.candidates(name)), None)

    def candidates(self, name: str) -> list[str]:
        """The inner names of all columns that have this name."""
        found = [(each, scope.find(name)) for each, scope in self.inputs.items()]
        return [inner(each, column) for each, column in found if column is not None]

    def meant(self, node: exp.Column) -> str | None:
        if not node.table:
            return self.find(node.name)
        qualifier = self.of(node.table)
        column = None if qualifier is None else self.inputs[qualifier].find(node.name)
        return None if qualifier is None or column is None else inner(qualifier, column)

    def knows(self, node: exp.Column) -> bool:
        return len(node.parts) <= 2 and self.meant(node) is not None

    def column(self, node: exp.Column, place: Place | None) -> Typed:
        self.check_qualifier(node, place)
        found = None if isinstance(node.this, exp.Star) else self.meant(node)
        if found is None:
            raise self._unknown(node, place)
        candidates = [found] if node.table else self.candidates(node.name)
        once = self._merged(node)
        if once is not None:
            return Typed(once.value, pa.array([], once.type), place)
        if len(candidates) > 1:
            raise QueryError(
                f'column "{node.name}" exists in several inputs',
                hint=f"Write {' or '.join(candidates)}.",
                place=place,
            )
        return typed.column(found, self.schema.field(found).type, place)

    def merged_name(self, node: exp.Column) -> str | None:
        once = self._merged(node)
        return None if once is None else once.name

    def _merged(self, node: exp.Column) -> Merged | None:
        """The column of USING that stands for all of this name."""
        candidates = set() if node.table else set(self.candidates(node.name))
        return next((each for each in self.merged if candidates and candidates <= each.columns), None)

    def check_qualifier(self, node: exp.Column, place: Place | None) -> None:
        parts = [part.name for part in node.parts[:-1]]
        if parts and (len(parts) > 1 or self.of(parts[0]) is None):
            raise QueryError(
                f'"{".".join(parts)}" is not an input of this query',
                hint=f"{did_you_mean(parts[0], self.inputs)}The inputs are {listed(self.inputs)}.",
                place=place,
            )

    def _unknown(self, node: exp.Column, place: Place | None) -> QueryError:
        qualifier = self.of(node.table) if node.table else None
        if qualifier is not None:
            return self.inputs[qualifier].unknown(node.name, place)
        return self.unknown(node.name, place)

    def unknown(self, name: str, place: Place | None) -> QueryError:
        plain = [column for scope in self.inputs.values() for column in scope.schema.names]
        names = [inner(each, column) for each, scope in self.inputs.items() for column in scope.schema.names]
        return QueryError(
            f'column "{name}" does not exist',
            hint=unknown_column(name, did_you_mean(name, plain), names),
            place=place,
        )

    def shown(self, name: str) -> tuple[str, str | None]:
        for qualifier, scope in self.inputs.items():
            for column in scope.schema.names:
                if inner(qualifier, column) == name:
                    return column, f"{qualifier}_{column}"
        return name, None

    def shown_alone(self, given: Typed) -> str | None:
        """The name of a column in its input."""
        return self.shown(given.expression.name)[0] if isinstance(given.expression, Column) else None

    def all_columns(self, node: exp.Expr, place: Place | None) -> list[tuple[str, Typed]]:
        if isinstance(node, exp.Column):
            qualifier = self.of(node.table)
            assert qualifier is not None
            return self._columns(qualifier, place)
        hidden = {column for each in self.merged for column in each.columns}
        once = [(each.name, Typed(each.value, pa.array([], each.type), place)) for each in self.merged]
        rest = [pair for each in self.inputs for pair in self._columns(each, place) if pair[0] not in hidden]
        return once + rest

    def written(self, node: exp.Expr, place: Place | None) -> list[exp.Expr]:
        columns = {
            inner(each, column): exp.column(column, table=each)
            for each, scope in self.inputs.items()
            for column in scope.schema.names
        }
        return [columns.get(name) or exp.column(name) for name, _ in self.starred(node, place)]

    def _columns(self, qualifier: str, place: Place | None) -> list[tuple[str, Typed]]:
        names = [inner(qualifier, column) for column in self.inputs[qualifier].schema.names]
        return [(name, typed.column(name, self.schema.field(name).type, place)) for name in names]


def inner(qualifier: str, column: str) -> str:
    """The name of an input's column inside a plan."""
    return f"{qualifier}.{column}"
