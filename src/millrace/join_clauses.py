"""The joins and sequences of SQL, from the words that Python gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from millrace.errors import RequestError
from millrace.language.places import listed, near

How = Literal["inner", "left", "right", "full"]
Mode = Literal["recent", "chronicle"]
Lengths = str | Mapping[str, str]
"""One length of time for all rows, or one for those of the "left" and one for those of the "right" relation."""
Counts = int | Mapping[str, int]
Columns = str | Sequence[str]

_SIDES = ("left", "right")
_COLUMN = re.compile(r"[^\W\d]\w*|`[^`]+`")
_CALL = re.compile(r"\b\w+\s*\([^()]*\)")


@dataclass(frozen=True)
class Part:
    """One input of a join: its text, the name of its rows, its time column, and its window if it has one.

    `ends` says that the time column is the end of a window, which is the first instant after the rows' own time.
    """

    text: str
    name: str
    time: str | None = None
    ends: bool = False
    window: str = ""

    def __str__(self) -> str:
        window = f" [{self.window}]" if self.window else ""
        return f"{self.text}{window}" + ("" if self.text == self.name and not window else f" AS {self.name}")


@dataclass(frozen=True)
class Joined:
    """Inputs of a join in the order of the text, and between two of them the words that join them."""

    parts: tuple[Part, ...]
    kinds: tuple[str, ...]
    conditions: tuple[str, ...]

    def __str__(self) -> str:
        further = zip(self.kinds, self.parts[1:], self.conditions, strict=True)
        return str(self.parts[0]) + "".join(f" {kind} {part}{condition}" for kind, part, condition in further)

    def with_next(self, part: Part, kind: str, condition: str) -> Joined:
        """The join with a further input."""
        return Joined((*self.parts, part), (*self.kinds, kind), (*self.conditions, condition))


# Names


def named(defaults: Sequence[str | None], names: object, taken: Iterable[str] = ()) -> list[str]:
    """A name for each relation: as given, or that of its stream, or "left" and "right" where these will not do.

    >>> named(["a", "b"], None), named(["a", "a"], None), named(["a", None], ("x", "y"))
    (['a', 'b'], ['left', 'right'], ['x', 'y'])
    >>> named([None], None, taken=["a", "b"])
    ['right']
    """
    if names is None:
        found = [each or "" for each in defaults]
        if "" in found or not _differ([*found, *taken]):
            found = list(_SIDES[-len(found) :]) if len(found) <= len(_SIDES) else found
    else:
        found = [names] if isinstance(names, str) else list(names) if isinstance(names, Sequence) else []
    if len(found) != len(defaults) or "" in found or not _differ([*found, *taken]):
        known = f", beside {listed(taken)}" if taken else ""
        example = (
            "names='x'"
            if len(defaults) == 1
            else f"names=({', '.join(repr(each) for each in 'xyzuvw'[: len(defaults)])})"
        )
        raise RequestError(
            f"the relations of a join have {len(defaults)} names that differ{known}", hint=f"Write {example}."
        )
    return found


def _differ(names: Sequence[str]) -> bool:
    return len({each.lower() for each in names}) == len(names)


def latest(parts: Sequence[Part]) -> str:
    """What holds the latest time of some relations; nothing where not all have a column for it.

    >>> latest([Part("a", "x", "ts"), Part("b", "y", "at")]), latest([Part("a", "x", "ts")]), latest([Part("a", "x")])
    ('greatest(x.ts, y.at)', 'x.ts', '')
    """
    if any(each.time is None or each.ends for each in parts):
        return ""
    times = ", ".join(f"{each.name}.{each.time}" for each in parts)
    return times if len(parts) == 1 else f"greatest({times})"


# Conditions


def join_condition(on: Columns) -> str:
    """What stands after a joined relation: columns that are equal, a condition, or nothing.

    >>> join_condition("k"), join_condition("x.k = y.k2"), join_condition(())
    (' USING (k)', ' ON x.k = y.k2', '')
    """
    columns = columns_of(on)
    if columns is None:
        return f" ON {on}"
    return f" USING ({', '.join(columns)})" if columns else ""


def columns_of(on: Columns) -> list[str] | None:
    """The columns that are named; None where it is a condition."""
    if not isinstance(on, str):
        return list(on)
    return [on.strip()] if _COLUMN.fullmatch(on.strip()) else None


def join_kind(how: str, *, without: bool) -> str:
    """The words that join two relations.

    >>> join_kind("inner", without=False), join_kind("full", without=False), join_kind("inner", without=True)
    ('JOIN', 'FULL JOIN', 'CROSS JOIN')
    """
    _check("how", how, ("inner", "left", "right", "full"))
    if how == "inner":
        return "CROSS JOIN" if without else "JOIN"
    if without:
        raise RequestError(
            f"a {how} join needs a condition", hint='Write on="k", or a condition such as on="x.k = y.k".'
        )
    return f"{how.upper()} JOIN"


def _check(name: str, given: object, known: Sequence[str]) -> None:
    if given not in known:
        raise RequestError(
            f'{name} cannot be "{given}"', hint=f"{near(str(given), known)}It is one of {listed(known)}."
        )


# Windows


def side_windows(within: Lengths | None, rows: Counts | None, partition_by: Columns) -> dict[str, str]:
    """The window of each side that has one.

    >>> side_windows("5 seconds", None, ())
    {'left': 'RANGE 5 seconds', 'right': 'RANGE 5 seconds'}
    >>> side_windows({"right": "1 minute"}, {"left": 100}, "k")
    {'left': 'ROWS 100 PARTITION BY k', 'right': 'RANGE 1 minute'}
    """
    columns = columns_of(partition_by) or []
    partition = f" PARTITION BY {', '.join(columns)}" if columns else ""
    if partition and rows is None:
        raise RequestError("partition_by says where rows are counted", hint="Give rows=100 as well.")
    counted = {side: f"ROWS {each}{partition}" for side, each in _by_side("rows", rows, int, "100").items()}
    timed = {side: f"RANGE {each}" for side, each in _by_side("within", within, str, "'5 seconds'").items()}
    if twice := counted.keys() & timed.keys():
        raise RequestError(
            f"the {min(twice)} side has a window of rows and one of time",
            hint="Give each side one of them: rows={'left': 100}, within={'right': '1 minute'}.",
        )
    return {side: window for side in _SIDES if (window := counted.get(side) or timed.get(side))}


def _by_side(name: str, given: object, kind: type, example: str) -> dict[str, object]:
    if given is None:
        return {}
    found = dict(given) if isinstance(given, Mapping) else dict.fromkeys(_SIDES, given)
    sound = all(isinstance(each, kind) and not isinstance(each, bool) for each in found.values())
    if not sound or not found or found.keys() - set(_SIDES):
        raise RequestError(
            f'{name} cannot be "{given}"',
            hint=f"Write {name}={example}, or {name}={{'left': {example}, 'right': {example}}}.",
        )
    return found


def with_windows(parts: Sequence[Part], windows: Mapping[str, str]) -> tuple[Part, ...]:
    """The relations at the left of a further one, with the windows that they have or get now."""
    asked = windows.get("left")
    if asked is None or (len(parts) == 1 and not parts[0].window):
        return tuple(replace(each, window=asked or each.window) for each in parts)
    other = next((each for each in parts if each.window != asked), None)
    if other is not None:
        raise RequestError(
            f'"{other.name}" has the window [{other.window}] in this join already, not [{asked}]'
            if other.window
            else f'the times of "{other.name}" are in a condition of this join already',
            hint="Relations joined one after another are one join with a window each: give all the same within, give "
            "only within={'right': ...} for the new one, or finish the first join with .select(...).",
        )
    return tuple(parts)


def with_window(aggregates: Mapping[str, str], window: str) -> dict[str, str]:
    """The aggregates of a join, whose window stands after one of them: behind a relation it would be that one's own.

    >>> with_window({"n": "count(*)", "s": "sum(x.v)"}, "[RANGE 1 minute SLIDE 1 minute WA x.ts]")
    {'n': 'count(*) [RANGE 1 minute SLIDE 1 minute WA x.ts]', 's': 'sum(x.v)'}
    """
    for name, text in aggregates.items():
        if found := _CALL.search(text):
            return {**aggregates, name: f"{text[: found.end()]} {window}{text[found.end() :]}"}
    raise RequestError("windows of a join are aggregated", hint="Say what to compute: .agg(n='count(*)').")


# Sequences


def asof_condition(left: Part, right: Part, on: Columns, tolerance: object, *, strict: bool) -> str:
    """The condition of an as-of join: the latest row of the right that is not after the row of the left.

    >>> trades, quotes = Part("trades", "t", "ts"), Part("quotes", "q", "at")
    >>> asof_condition(trades, quotes, "k", "5 seconds", strict=False)
    ' MATCH_CONDITION (q.at <= t.ts AND q.at >= t.ts - INTERVAL 5 seconds) USING (k)'
    >>> asof_condition(trades, quotes, "t.a = q.b", None, strict=True)
    ' ON q.at < t.ts AND t.a = q.b'
    """
    earlier, later = _time(right), _time(left)
    before = "<=" if right.ends else "<" if strict or left.ends else "<="
    times = [f"{earlier} {before} {later}"]
    if tolerance is not None:
        times.append(f"{earlier} >= {later} - INTERVAL {_length('tolerance', tolerance)}")
    columns = columns_of(on)
    if columns:
        return f" MATCH_CONDITION ({' AND '.join(times)}) USING ({', '.join(columns)})"
    return f" ON {' AND '.join([*times, *([str(on)] if columns is None else [])])}"


def _time(part: Part) -> str:
    if part.time is None:
        raise RequestError(
            f'"{part.name}" has no time column to look back from', hint="Declare its stream with time= or internal=."
        )
    return f"{part.name}.{part.time}"


def asof_kind(how: str) -> str:
    """The words of an as-of join, which drops rows without a match or keeps them."""
    _check("how", how, ("inner", "left"))
    return "ASOF JOIN" if how == "inner" else "ASOF LEFT JOIN"


def sequence_clauses(parts: Sequence[Part], on: Columns, mode: str, within: object, *, outer: bool) -> str:
    """What stands after the streams of a sequence.

    >>> sequence_clauses([Part("a", "a"), Part("b", "b"), Part("c", "c")], "k", "chronicle", "5 minutes", outer=True)
    ' ON a.k = b.k AND b.k = c.k MODE CHRONICLE OUTER WITHIN INTERVAL 5 minutes'
    """
    _check("mode", mode, ("recent", "chronicle"))
    columns = columns_of(on)
    if columns is None:
        conditions = [str(on)]
    else:
        conditions = [f"{a.name}.{each} = {b.name}.{each}" for a, b in pairwise(parts) for each in columns]
    clauses = [f"ON {' AND '.join(conditions)}"] if conditions else []
    clauses += [f"MODE {mode.upper()}", *(["OUTER"] if outer else [])]
    clauses += [f"WITHIN INTERVAL {_length('within', within)}"] if within is not None else []
    return "".join(f" {each}" for each in clauses)


def _length(name: str, given: object) -> str:
    if not isinstance(given, str):
        raise RequestError(f'{name} is a length of time in words, not "{given}"', hint=f"Write {name}='5 seconds'.")
    return given
