"""The options of queues that hold for a query: its own, and those of its streams that it does not set itself."""

from __future__ import annotations

from collections.abc import Mapping

from millrace.errors import Place, QueryError
from millrace.kernel.progress.time_contract import ASIDE
from millrace.language.declarations.query_options import said, spelling
from millrace.language.declarations.streams import QUEUE_OPTIONS
from millrace.language.grammar.statements import Options
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import scans_of
from millrace.plan.updates.queue_configuration import PER_QUEUE
from millrace.plan.updates.queue_placement import has_queue_per_stream, mode_of
from millrace.plan.updates.update_keys import reads_updates
from millrace.plan.updates.window_commitments import committed

_ORDINARY = ("order", "join", "alpha", "slack", "smooth", "panes", "flush", "low_level_groups", "state_limit")
"""The options that are for queries over all rows."""
_APPEND = "write queue = 'append', which answers over all rows"


def effective(own: Mapping[str, str], written: Options, root: Node, place: Place | None) -> dict[str, str]:
    """The options of a query with those that its streams give it; refuses its own without effect."""
    options = {**_of_streams(own, root, place), **own}
    for key, setting in written.items():
        without = _without_effect(key, options, root)
        if without is not None:
            fact, hint = without
            raise QueryError(f"{said(setting, value=key == 'queue')} {fact}", hint=hint, place=setting.key.place)
    return {key: value for key, value in options.items() if key in own or _without_effect(key, options, root) is None}


def _of_streams(own: Mapping[str, str], root: Node, place: Place | None) -> dict[str, str]:
    """The options that the streams of a query set alike and the query does not.

    Where each stream has a queue of its own they may differ.
    """
    streams = {each.stream.name: each.stream for each in scans_of(root) if each.outlet not in ASIDE}
    found: dict[str, str] = {}
    for key in QUEUE_OPTIONS:
        values = {each.options.get(key) for each in streams.values()}
        if key in own or values <= {None}:
            continue
        if len(values) > 1 and key in PER_QUEUE and has_queue_per_stream(root):
            continue
        if len(values) > 1:
            raise _different(key, list(streams.values()), place)
        found[key] = next(each.options[key] for each in streams.values())
    return found


def _different(key: str, streams: list[Stream], place: Place | None) -> QueryError:
    first = streams[0]
    other = next(each for each in streams if each.options.get(key) != first.options.get(key))
    words = [f'"{each.name}" has {each.options.get(key, "none")}' for each in (first, other)]
    value = next(each.options[key] for each in (first, other) if key in each.options)
    return QueryError(
        f'the streams of the query differ in option "{key}": {" and ".join(words)}',
        hint=f"Say in the query which holds for it: WITH ({spelling(key, value)}).",
        place=place,
    )


def _without_effect(key: str, options: Mapping[str, str], root: Node) -> tuple[str, str] | None:
    """Why an option has no effect on a query, and what to do about it; None if it has one."""
    mode = mode_of(root, options)
    if key in _ORDINARY and mode == "update" and reads_updates(root):
        return "has no effect on an update query", f"Leave it out, or {_APPEND}."
    if key == "queue":
        return _wrong_queue(options[key], root)
    reason = _missing(key, options, root) if key in QUEUE_OPTIONS else None
    return None if reason is None else ("has no effect on this query", f"Leave it out: {reason}.")


def _wrong_queue(policy: str, root: Node) -> tuple[str, str] | None:
    if policy == "auto" and committed(root):
        return "is not supported yet with windows", "Write queue = 'inplace', or queue = 'append'."
    return None


def _missing(key: str, options: Mapping[str, str], root: Node) -> str | None:
    """What an option of queues needs, if it is not there."""
    windows = _has_update_windows(options, root)
    match key:
        case "keep":
            sheds = options.get("queue") == "append_shed"
            random = windows and options.get("update_window") == "random"
            return None if sheds or random else "it is for queue = 'append_shed', and for baseline = 'random_windows'"
        case "update_window" | "close":
            return None if windows else "it is for windows over update streams that a queue commits to"
        case "tick":
            own = windows and options.get("close") == "own"
            return None if own else "it is for windows over update streams with close = 'own'"
        case "memory":
            rows = mode_of(root, options) == "update" and not committed(root)
            return None if rows else "it is for queues of updates, without windows and without queue = 'append'"
    plain = mode_of(root, options) == "plain"
    return "it is for queries with queues, over update streams or with the option queue" if plain else None


def _has_update_windows(options: Mapping[str, str], root: Node) -> bool:
    return mode_of(root, options) == "update" and bool(committed(root))
