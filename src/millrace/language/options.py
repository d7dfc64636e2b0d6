"""The options of a query, `WITH (key = value, ...)`: known keys, checked values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from millrace.errors import NotYet, QueryError
from millrace.language.intervals import parse_interval
from millrace.language.places import listed, near
from millrace.language.statements import Options, Setting
from millrace.plan.parts import is_breaks, is_strategy


@dataclass(frozen=True)
class Option:
    """What an option may be set to, what of that works, and what to do meanwhile."""

    expected: str
    accepts: Callable[[str], bool]
    works: Callable[[str], bool]
    meanwhile: str = "Leave the option out."


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda text: text.lower() in values


def _nothing(text: str) -> bool:
    return False


def _number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?([eE][+-]?\d+)?", text) is not None


def _positive(text: str) -> bool:
    return _number(text) and 0 < float(text) < float("inf")


def _whole(text: str) -> bool:
    return text.isdigit()


def _fraction(text: str) -> bool:
    return _number(text) and float(text) <= 1


def _interval(text: str) -> bool:
    try:
        return parse_interval(text) >= 0
    except QueryError:
        return False


_INTERVAL = "a length of time such as '5 seconds'"
_SIZE = "a size such as 1000000 or '64mb'"

OPTIONS: Mapping[str, Option] = {
    "strategy": Option(
        "dfs, bfs, rr or batch:K, and others for parts such as 'dfs, merge = bfs'", is_strategy, is_strategy
    ),
    "order": Option("in or out", _one_of("in", "out"), _one_of("in", "out")),
    "join": Option(
        "oop, sync_filter, filter_order or adaptive",
        _one_of("oop", "sync_filter", "filter_order", "adaptive"),
        _nothing,
    ),
    "queue": Option(
        "append, append_shed, update_fifo, inplace or linecutting",
        _one_of("append", "append_shed", "update_fifo", "inplace", "linecutting"),
        _nothing,
    ),
    "update_window": Option("lazy or eager", _one_of("lazy", "eager"), _nothing),
    "slack": Option(_INTERVAL, _interval, _nothing, "Declare DISORDER for the stream."),
    "ets": Option("on or off", _one_of("on", "off"), _nothing, "Write ETS ON DEMAND or ETS NONE in CREATE STREAM."),
    "ets_arcs": Option("on or off", _one_of("on", "off"), _one_of("on", "off")),
    "share": Option("a positive number", _positive, _positive),
    "breaks": Option("none, chain, or operators to break after such as 'filter, merge'", is_breaks, is_breaks),
    "alpha": Option("a number from 0 to 1", _fraction, _nothing),
    "flush": Option("on, off or " + _INTERVAL, lambda text: _one_of("on", "off")(text) or _interval(text), _nothing),
    "low_level_groups": Option("a whole number", _whole, _nothing),
    "memory": Option("paged or naive", _one_of("paged", "naive"), _nothing),
    "max_future_skew": Option(_INTERVAL, _interval, _interval),
    "state_limit": Option(_SIZE, lambda text: re.fullmatch(r"\d+\s*([kmg]i?b?)?", text.lower()) is not None, _nothing),
}


def bind_options(options: Options) -> dict[str, str]:
    """The options as text, each known and checked."""
    return {key: _value(setting) for key, setting in options.items()}


def _value(setting: Setting) -> str:
    key, value = setting.key.text, setting.value
    option = OPTIONS.get(key)
    if option is None:
        raise QueryError(
            f'option "{key}" is unknown',
            hint=f"{near(key, OPTIONS)}The options are {listed(OPTIONS)}.",
            place=setting.key.place,
        )
    if not option.accepts(value.text):
        raise QueryError(
            f'option "{key}" cannot be "{value.text}"', hint=f"It takes {option.expected}.", place=value.place
        )
    if not option.works(value.text):
        raise NotYet(
            f'option "{key}" = "{value.text}" has no engine part yet', hint=option.meanwhile, place=value.place
        )
    return value.text.lower()
