"""Update queries: queries without update semantics are refused; ACCESS says how often answers are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from millrace.errors import Place, QueryError, RequestError, listed
from millrace.kernel.updates.queue_settings import Access
from millrace.language.declarations.query_options import bind_options, said
from millrace.language.declarations.streams import QUEUE_OPTIONS
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.statements import AccessClause, Options
from millrace.language.select.node_places import NodePlaces
from millrace.language.updates.queue_options import effective
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.queue_configuration import options_at, settings_of
from millrace.plan.updates.queue_placement import check_updates, mode_of, queues_of, with_queues
from millrace.plan.updates.refusals import NoUpdateSemantics
from millrace.plan.updates.update_keys import first_of, result_key
from millrace.plan.updates.window_commitments import committed

ALTERED = ("queue", "keep", "budget")
"""The options of queues that may change under a running query."""
_SETTLED = {
    "memory": "a queue lays its memory out when it starts",
    **dict.fromkeys(("update_window", "close", "tick"), "it decides which windows are answered"),
}


def check_query(root: Node, options: Mapping[str, str], places: NodePlaces, place: Place | None) -> None:
    """Refuse a query without update semantics, at the place of what has none."""
    try:
        check_updates(root, options)
    except NoUpdateSemantics as error:
        raise QueryError(error.fact, hint=error.hint, place=places.of(error.node, error.part) or place) from None


# ACCESS


def bind_access(
    clauses: tuple[AccessClause, ...], root: Node, options: Mapping[str, str], functions: Functions
) -> tuple[Access, ...]:
    """How often the answers of a query are read, by classes of its keys."""
    if not clauses:
        return ()
    if mode_of(root, options) != "update":
        raise QueryError(
            "ACCESS is for update queries",
            hint="Leave it out, or declare UPDATE KEY for the streams of the query.",
            place=clauses[0].place,
        )
    if committed(root):
        raise QueryError(
            "ACCESS is not supported yet with windows",
            hint="Leave it out: a window is released when its key has its turn.",
            place=clauses[0].place,
        )
    found = tuple(_access(each, root, functions) for each in clauses)
    try:
        for queue in queues_of(root, options):
            settings_of(options_at(queue, options), found)
    except RequestError as error:
        raise QueryError(error.fact, hint=error.hint, place=clauses[0].place) from None
    for before, after in pairwise(clauses):
        if before.when is None:
            raise QueryError(
                "ACCESS without WHEN is followed by another class",
                hint="It applies to all keys: put it last.",
                place=after.place,
            )
    return found


def _access(clause: AccessClause, root: Node, functions: Functions) -> Access:
    if clause.every.micros <= 0:
        raise QueryError(
            "ACCESS EVERY takes a positive interval", hint="Write ACCESS EVERY INTERVAL 1 MINUTE.", place=clause.place
        )
    if clause.when is None:
        return Access(clause.every.micros)
    names = root.schema.names
    key = [first_of(each, names) for each in result_key(root).update]
    bound = ExpressionBinder(Scope(root.schema), functions).condition(clause.when, "the condition of WHEN")
    known = {name for each in result_key(root).update for name in each}
    for name in bound.expression.columns():
        if name not in known:
            columns = f"WHEN is a condition on the key, {listed(key)}." if key else "Leave WHEN out: there is one key."
            raise QueryError(f'"{name}" is not part of the update key', hint=columns, place=bound.place)
    return Access(clause.every.micros, bound.expression)


# ALTER QUERY


def altered_queue(query: Query, options: Options) -> None:
    """Refuse options that a running queue cannot change."""
    for key, reason in _SETTLED.items():
        if key in options:
            raise QueryError(
                f"{said(options[key])} of a query cannot be altered: {reason}",
                hint="Drop the query and add it anew.",
                place=options[key].key.place,
            )
    setting = next((options[key] for key in QUEUE_OPTIONS if key in options), None)
    if setting is None:
        return
    own = {**query.options, **bind_options(options)}
    effective(own, options, query.root, setting.key.place)
    after = replace(query, options=own)
    try:
        check_updates(query.root, own)
        settings_of(own, query.access)
    except RequestError as error:
        raise QueryError(error.fact, hint=error.hint, place=setting.value.place) from None
    if with_queues(query.root, query) != with_queues(query.root, after):
        before = query.options.get("queue", "none" if mode_of(query.root, query.options) == "plain" else "inplace")
        raise QueryError(
            f'the queue of query "{query.name}" cannot be changed from {before} to "{setting.value.text}": '
            "the query would need other operators",
            hint="Drop the query and add it anew.",
            place=setting.value.place,
        )
