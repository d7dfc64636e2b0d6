"""Rows that say what released them: `WITH (released = 'on')`."""

from __future__ import annotations

from collections.abc import Mapping

from millrace.errors import QueryError
from millrace.kernel.progress.released import COLUMNS
from millrace.language.declarations.query_options import said
from millrace.language.grammar.statements import Options
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Released
from millrace.plan.updates.queue_placement import mode_of


def with_releases(root: Node, options: Options, bound: Mapping[str, str]) -> Node:
    """The rows of a query with what released each of them, if its options ask for that."""
    setting = options.get("released")
    if setting is None or setting.value.text.lower() != "on":
        return root
    if mode_of(root, bound) != "plain":
        raise QueryError(
            f"{said(setting)} is for queries without a queue: a queue releases rows by itself, and no promise does",
            hint="Leave it out; millrace latest --staleness says how long keys have waited.",
            place=setting.key.place,
        )
    if taken := [name for name in COLUMNS if name in root.column_names()]:
        raise QueryError(
            f'the query has a column "{taken[0]}" already', hint="Rename it with AS.", place=setting.key.place
        )
    return Released(root)
