"""The options of a query, `WITH (key = value, ...)`: known keys, checked values, and none without an effect.

Rules:
- `OPTIONS` are for users. What exists only to be compared with is set by `baseline = 'name, ...'`.
- A baseline stands for one option of the plan and its value. Behind `with_baselines` the plan's option is the key, and
  its setting still says what was written, for messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from millrace.errors import NotYet, QueryError, did_you_mean, listed
from millrace.kernel.updates.queue_settings import LINECUTTING_AS_PRINTED, POLICIES
from millrace.language.grammar.statements import Name, Options, Setting
from millrace.language.grammar.text.intervals import parse_interval
from millrace.plan.nodes.aggregate_nodes import Aggregate, AnyWindow, PartitionedRows, TrailingWindow
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, OrderByColumns, OrderByTime, Project, scans_of
from millrace.plan.physical.pane_choice import can_merge
from millrace.plan.physical.scheduling_options import is_breaks, is_strategy


@dataclass(frozen=True)
class Option:
    """What an option may be set to; and, if it is not supported yet, what to do instead."""

    expected: str
    accepts: Callable[[str], bool]
    instead: str | None = None


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda text: text.lower() in values


def _number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?([eE][+-]?\d+)?", text) is not None


def _positive(text: str) -> bool:
    return _number(text) and 0 < float(text) < float("inf")


def _whole(text: str) -> bool:
    return text.isdigit() and int(text) > 0


def _flush(text: str) -> bool:
    found = re.fullmatch(r"slow_flush\(\s*(\d+)\s*,\s*(\d+)\s*\)|lazy_flush\(\s*(\d+)\s*\)", text.lower())
    return found is not None and all(int(each) > 0 for each in found.groups() if each is not None)


def _share(text: str) -> bool:
    return _number(text) and 0 < float(text) <= 1


def _rows(text: str) -> str | None:
    """The number of rows that a text like '500 rows' names."""
    found = re.fullmatch(r"\s*(\d+)\s*rows?\s*", text.lower())
    return found[1] if found is not None and int(found[1]) > 0 else None


def _budget(text: str) -> bool:
    return _rows(text) is not None or _length(text)


def _length(text: str) -> bool:
    return _interval(text) and parse_interval(text) > 0


def _fraction(text: str) -> bool:
    return _number(text) and float(text) < 1


def _interval(text: str) -> bool:
    try:
        return parse_interval(text) >= 0
    except QueryError:
        return False


_INTERVAL = "a length of time such as '5 seconds'"
_QUEUES = tuple(each for each in POLICIES if each != LINECUTTING_AS_PRINTED)

OPTIONS: Mapping[str, Option] = {
    "strategy": Option("dfs, bfs, rr or batch:K, and others for parts such as 'dfs, merge = bfs'", is_strategy),
    "join": Option(
        "oop, sync_filter, filter_order or adaptive",
        _one_of("oop", "sync_filter", "filter_order", "adaptive"),
    ),
    "queue": Option(f"{', '.join(_QUEUES[:-1])} or {_QUEUES[-1]}", _one_of(*_QUEUES)),
    "keep": Option("a number above 0, up to 1", _share),
    "update_window": Option("lazy or eager", _one_of("lazy", "eager")),
    "close": Option("bound or own", _one_of("bound", "own")),
    "tick": Option(_INTERVAL, _length),
    "budget": Option("a number of rows such as '500 rows', or a length of time", _budget),
    "slack": Option(
        f"{_INTERVAL}, or a number of rows such as '100 rows'", lambda it: bool(_rows(it)) or _interval(it)
    ),
    "smooth": Option(_INTERVAL, _length),
    "ets": Option("on or off", _one_of("on", "off"), "Write ETS ON DEMAND or ETS NONE in CREATE STREAM."),
    "ets_arcs": Option("on or off", _one_of("on", "off")),
    "released": Option("on or off", _one_of("on", "off")),
    "share": Option("a positive number", _positive),
    "breaks": Option("none, chain, or operators to break after such as 'filter, merge'", is_breaks),
    "alpha": Option("a number from 0 on, below 1", _fraction),
    "flush": Option("slow_flush(i, m) or lazy_flush(m), with numbers above 0", _flush),
    "low_level_groups": Option("a whole number above 0", _whole),
    "panes": Option("auto, on or off", _one_of("auto", "on", "off")),
    "max_future_skew": Option(_INTERVAL, _interval),
    "state_limit": Option("a whole number above 0, of groups or rows", _whole),
}


BASELINE = "baseline"
BASELINES: Mapping[str, tuple[str, str]] = {
    "in_order": ("order", "in"),
    "in_order_flush": ("flush", "in_order"),
    "in_order_flush_two_slots": ("flush", "in_order(2)"),
    "every_window": ("update_window", "every"),
    "random_windows": ("update_window", "random"),
    LINECUTTING_AS_PRINTED: ("queue", LINECUTTING_AS_PRINTED),
    "naive_memory": ("memory", "naive"),
}
"""The baselines of the papers: the option of the plan that each sets, and to what."""


def with_baselines(options: Options) -> Options:
    """The options with each baseline under the option of the plan that it sets."""
    written = options.get(BASELINE)
    if written is None:
        return options
    found = {key: setting for key, setting in options.items() if key != BASELINE}
    for name in re.split(r"\s*,\s*", written.value.text.strip().lower()):
        if name not in BASELINES:
            raise QueryError(
                f'baseline "{name}" is unknown',
                hint=f"{did_you_mean(name, BASELINES)}The baselines are {listed(BASELINES)}.",
                place=written.value.place,
            )
        key, _ = BASELINES[name]
        if key in found:
            raise QueryError(
                f'baseline "{name}" cannot stand beside {said(found[key])}',
                hint="Keep one of them.",
                place=written.value.place,
            )
        found[key] = Setting(written.key, Name(name, place=written.value.place))
    return found


def said(setting: Setting, *, value: bool = False) -> str:
    """An option, if asked for with its value, or a baseline, as it was written."""
    if setting.key.text == BASELINE:
        return f'baseline "{setting.value.text}"'
    return f'option "{setting.key.text}"' + (f' = "{setting.value.text}"' if value else "")


def spelling(key: str, value: str) -> str:
    """How an option of the plan is written.

    >>> spelling("queue", "inplace"), spelling("memory", "naive")
    ("queue = 'inplace'", "baseline = 'naive_memory'")
    """
    names = {pair: name for name, pair in BASELINES.items()}
    name = names.get((key, value))
    return f"{key} = '{value}'" if name is None else f"{BASELINE} = '{name}'"


def bind_options(options: Options) -> dict[str, str]:
    """The options as text, each known and checked; `with_baselines` has been called."""
    return {key: _value(setting) for key, setting in options.items()}


def _value(setting: Setting) -> str:
    key, value = setting.key.text, setting.value
    if key == BASELINE:
        return BASELINES[value.text][1]
    option = OPTIONS.get(key)
    if option is None:
        raise QueryError(
            f'option "{key}" is unknown',
            hint=f"{did_you_mean(key, OPTIONS)}The options are {listed([*OPTIONS, BASELINE])}.",
            place=setting.key.place,
        )
    if not option.accepts(value.text):
        raise QueryError(
            f'option "{key}" cannot be "{value.text}"', hint=f"It takes {option.expected}.", place=value.place
        )
    if option.instead is not None:
        raise NotYet(f'option "{key}" = "{value.text}" is not supported yet', hint=option.instead, place=value.place)
    if key in ("budget", "slack") and (rows := _rows(value.text)) is not None:
        return f"{rows} rows"
    # The plan reads lengths of time in microseconds.
    return str(parse_interval(value.text)) if key in ("slack", "smooth", "tick", "budget") else value.text.lower()


# Options that are for some windows or joins alone


def _without_end(window: AnyWindow) -> bool:
    return isinstance(window, PartitionedRows) or (isinstance(window, TrailingWindow) and window.range is None)


def _merges(root: Node) -> bool:
    return any(isinstance(each, Aggregate) and can_merge(each) for each in walk(root))


def _grows(root: Node) -> bool:
    """True if only the number of its groups or rows limits the state of a node."""
    windows = any(isinstance(each, Aggregate) and _without_end(each.window) for each in walk(root))
    return windows or any(isinstance(each, Following | RowsJoin) for each in walk(root))


def _joins(root: Node) -> bool:
    return any(isinstance(each, Join) for each in walk(root))


def _joins_outer(root: Node) -> bool:
    return any(isinstance(each, Join) and any(side.outer for side in each.sides) for each in walk(root))


def _by_time(root: Node) -> bool:
    """True if no rows progress by a number, which has no length of time."""
    return all(each.stream.time.unit == "time" for each in scans_of(root))


_SAME_FOR_ALL = (
    "it is for windows that are the same for all groups, such as [RANGE 1 MINUTE SLIDE 1 MINUTE], and for functions "
    "that merge partial results: all but your own without merge"
)
_EFFECTS: Mapping[str, tuple[Callable[[Node], bool], str]] = {
    **dict.fromkeys(("panes", "low_level_groups", "flush"), (_merges, _SAME_FOR_ALL)),
    "state_limit": (
        _grows,
        "it is for [RANGE UNLIMITED PRECEDING], ROWS with PARTITION BY, joins by rows, as-of joins and sequences",
    ),
    "join": (_joins, "it is for joins over time"),
    "smooth": (_joins_outer, "it is for outer joins over time"),
    "alpha": (_joins, "it is for joins over time that are ordered by it"),
}


def refuse_without_effect(options: Options, root: Node) -> None:
    """Refuse an option that has no effect on a query."""
    for key, setting in options.items():
        takes, what = _EFFECTS.get(key, (None, ""))
        if takes is not None and not takes(root):
            raise QueryError(
                f"{said(setting)} has no effect on this query", hint=f"Leave it out: {what}.", place=setting.key.place
            )
    _refuse_lengths_of_numbers(options, root)
    _refuse_disorder(options, root)


def _refuse_lengths_of_numbers(options: Options, root: Node) -> None:
    """Refuse a slack in time where rows progress by a number."""
    slack = options.get("slack")
    if slack is not None and _rows(slack.value.text) is None and not _by_time(root):
        raise QueryError(
            f"{said(slack, value=True)} is a length of time, and rows of this query progress by a BIGINT",
            hint="Write a number of rows, such as slack = '100 rows'.",
            place=slack.value.place,
        )


def _refuse_disorder(options: Options, root: Node) -> None:
    """Refuse a method for ordered output where the join gives none, and alpha without the method that reads it."""
    join, alpha = options.get("join"), options.get("alpha")
    method = "oop" if join is None and not in_order(root) else "adaptive" if join is None else join.value.text.lower()
    if join is not None and method != "oop" and not in_order(root):
        raise QueryError(
            f'option "join" = "{method}" is for an inner join over time whose rows are ordered by their own time',
            hint="Order the query by the later of both times, ORDER BY greatest(x.ts, y.ts), or write join = 'oop'.",
            place=join.value.place,
        )
    if alpha is not None and method != "adaptive":
        raise QueryError(
            'option "alpha" has no effect on this query',
            hint="It is for ordered joins with join = 'adaptive': add ORDER BY, or leave alpha out.",
            place=alpha.key.place,
        )


def in_order(root: Node) -> bool:
    """True if a query is an inner join over time, ordered by the later of both times."""
    if not isinstance(root, OrderByTime) or isinstance(root, OrderByColumns):
        return False
    node = root.input
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Join) and node.time == "max" and not any(side.outer for side in node.sides)
