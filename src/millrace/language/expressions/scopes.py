"""The columns that expressions may name, and the name that may stand before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, did_you_mean
from millrace.kernel.columns.expressions import Expression
from millrace.language.expressions import typed
from millrace.language.expressions.sql_functions import unknown_column
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.text.places import place_of, placed_as
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START

_BOUNDS = frozenset((WINDOW_START, WINDOW_END))


@dataclass(frozen=True)
class Scope:
    """The columns that expressions may name, and the name that may stand before them."""

    schema: pa.Schema
    qualifier: str | None = None
    laterals: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)
    """The columns of exploded values, by the name that may stand before them; without one by ""."""
    unselected: frozenset[str] = field(default=frozenset(), kw_only=True)
    """The times that the query which is read has, and does not select."""

    def find(self, name: str) -> str | None:
        """The declared spelling of a column, whatever its case; None when there is none."""
        return self._exact.get(name) or self._spellings.get(name.lower())

    @cached_property
    def _exact(self) -> dict[str, str]:
        return {name: name for name in self.schema.names}

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """The first of the columns that have a name, whatever its case."""
        return {name.lower(): name for name in reversed(self.schema.names)}

    def meant(self, node: exp.Column) -> str | None:
        """The column with the name of a node, if there is one; unlike `column`, it refuses nothing."""
        return self.find(node.name)

    def knows(self, node: exp.Column) -> bool:
        """True if a node names a column, and the input before it is one."""
        parts = [part.name.lower() for part in node.parts[:-1]]
        known = [each.lower() for each in (self.qualifier, *self.laterals) if each is not None]
        return (not parts or (len(parts) == 1 and parts[0] in known)) and self.meant(node) is not None

    def split(self, node: exp.Column) -> tuple[exp.Column, list[str]]:
        """The column that a name with dots begins with, and the fields that follow; none without such a column."""
        parts = list(node.parts)
        if self.knows(node):
            return node, []
        for count in (2, 1):
            names = [part.name for part in parts[:count]]
            begin = exp.column(names[-1], table=names[0] if count == 2 else None)
            if len(parts) > count and self.knows(begin):
                return placed_as(begin, node), [part.name for part in parts[count:]]
        return node, []

    def shown(self, name: str) -> tuple[str, str | None]:
        """The name of a column in results, and the one it has if another input has a column of that name."""
        return name, None

    def merged_name(self, node: exp.Column) -> str | None:
        """The name of the one column that USING has made of several, if a node means it."""
        return None

    def starred(self, node: exp.Expr, place: Place | None) -> list[tuple[str, Typed]]:
        """The columns that `*` or `name.*` stands for without those of EXCEPT, by the names that `shown` takes."""
        if isinstance(node, exp.Column):
            self.check_qualifier(node, place)
        star = node.this if isinstance(node, exp.Column) else node
        excepted = {self._excepted(each, node) for each in star.args.get("except_") or ()}
        found = [(name, each) for name, each in self.all_columns(node, place) if each.expression not in excepted]
        if not found:
            raise QueryError("EXCEPT leaves no column", hint="Name the columns that you want.", place=place)
        return found

    def _excepted(self, node: exp.Expr, star: exp.Expr) -> Expression:
        """What a name in EXCEPT stands for; after `name.*` it is of that input."""
        named = exp.column(node.name, table=node.text("table") or star.text("table") or None)
        return self.column(named, place_of(node)).expression

    def all_columns(self, node: exp.Expr, place: Place | None) -> list[tuple[str, Typed]]:
        """The columns of all inputs, or of the one before `*`."""
        names = self.schema.names
        if isinstance(node, exp.Column):
            own = {name.lower(): columns for name, columns in self.laterals.items()}
            made = {name for columns in own.values() for name in columns}
            names = own.get(node.table.lower()) or [name for name in names if name not in made]
        return [(name, typed.column(name, self.schema.field(name).type, place)) for name in names]

    def written(self, node: exp.Expr, place: Place | None) -> list[exp.Expr]:
        """The columns that `*` or `name.*` stands for, as nodes."""
        return [exp.column(name) for name, _ in self.starred(node, place)]

    def column(self, node: exp.Column, place: Place | None) -> Typed:
        """The column that a node names."""
        self.check_qualifier(node, place)
        found = self.find(node.name)
        if found is None or isinstance(node.this, exp.Star):
            raise self.unknown(node.name, place)
        return typed.column(found, self.schema.field(found).type, place)

    def check_qualifier(self, node: exp.Column, place: Place | None) -> None:
        """Refuse a name before the column that is not that of the input."""
        parts = [part.name for part in node.parts[:-1]]
        known = [each.lower() for each in (self.qualifier, *self.laterals) if each is not None]
        if parts and (len(parts) > 1 or parts[0].lower() not in known):
            what = ".".join(parts)
            hint = (
                f'Write "{self.qualifier}", or no name at all.' if self.qualifier else "Give the input a name with AS."
            )
            structs = [each.name for each in self.schema if pa.types.is_struct(each.type)]
            hint = did_you_mean(parts[0], structs, near=0.75) + hint
            raise QueryError(f'"{what}" is not an input of this query', hint=hint, place=place)

    def unknown(self, name: str, place: Place | None) -> QueryError:
        """The error for a column that does not exist."""
        hint = unknown_column(name, did_you_mean(name, self.schema.names), self.schema.names)
        if name.lower() in self.unselected or (name.lower() in _BOUNDS and self.unselected & _BOUNDS):
            hint = f"The query that is read does not select {name.lower()}: add it to its select list."
        return QueryError(f'column "{name}" does not exist', hint=hint, place=place)
