"""The clauses of joins in SQL, from the arguments that Python gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Literal

from millrace.api.sql_text.durations import Extent, extent
from millrace.errors import RequestError, UnboundedState, did_you_mean, listed

How = Literal["inner", "left", "right", "full"]
Lengths = Extent | Mapping[str, Extent]
"""One length of time for all rows, or one for those of the "left" and one for those of the "right" relation."""
Counts = int | Mapping[str, int]
Columns = str | Sequence[str]

_SIDES = ("left", "right")
_COLUMN = re.compile(r"[^\W\d]\w*|`[^`]+`")
_CALL = re.compile(r"\b\w+\s*\([^()]*\)")


@dataclass(frozen=True)
class InputText:
    """One input of a join: its SQL, its name, its time columns, and its window if it has one.

    A join as an input has the time columns of its own inputs. `ends` is True if the time column is the end of a window,
    which is the first instant after the rows' own time.
    """

    text: str
    name: str
    times: tuple[str, ...] = ()
    ends: bool = False
    window: str = ""

    def __str__(self) -> str:
        window = f" [{self.window}]" if self.window else ""
        return f"{self.text}{window}" + ("" if self.text == self.name and not window else f" AS {self.name}")


@dataclass(frozen=True)
class JoinText:
    """The inputs of a join in order, and the kind and condition by which each after the first is joined."""

    inputs: tuple[InputText, ...]
    kinds: tuple[str, ...]
    conditions: tuple[str, ...]

    def __str__(self) -> str:
        further = zip(self.kinds, self.inputs[1:], self.conditions, strict=True)
        return str(self.inputs[0]) + "".join(f" {kind} {each}{condition}" for kind, each, condition in further)

    @property
    def looks_back(self) -> bool:
        """True if it holds an as-of join, whose inputs cannot all have a window."""
        return any(each.startswith("ASOF") for each in self.kinds)

    def joined(
        self,
        right: InputText,
        on: Columns,
        how: str,
        within: Lengths | None,
        rows: Counts | None,
        partition_by: Columns,
    ) -> JoinText:
        """The join with a further input, and the windows of that and of the inputs so far."""
        windows = _side_windows(within, rows, partition_by)
        condition = _join_condition(on)
        kind = _join_kind(how, without=not condition)
        before = replace(self, inputs=_with_windows(self.inputs, windows))
        return before.with_next(replace(right, window=windows.get("right", "")), kind, condition)

    def with_next(self, further: InputText, kind: str, condition: str) -> JoinText:
        """The join with a further input."""
        return JoinText((*self.inputs, further), (*self.kinds, kind), (*self.conditions, condition))


# Names


def named(defaults: Sequence[str | None], names: object, taken: Iterable[str] = ()) -> list[str]:
    """A name for each relation: as given, or that of its stream, or "left" and "right" if stream names clash.

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


def latest(inputs: Sequence[InputText]) -> str:
    """The expression for the latest time of some inputs; nothing if one has no column for it.

    >>> x, y = InputText("a", "x", ("ts",)), InputText("b", "y", ("at",))
    >>> latest([x, y]), latest([x]), latest([InputText("a", "x")])
    ('greatest(x.ts, y.at)', 'x.ts', '')
    """
    if not inputs or any(each.ends or not each.times for each in inputs):
        return ""
    times = [f"{each.name}.{time}" for each in inputs for time in each.times]
    return times[0] if len(times) == 1 else f"greatest({', '.join(times)})"


def times_shown(inputs: Sequence[InputText], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of joined rows that hold the times of some inputs; nothing if one has none.

    >>> times_shown([InputText("a", "x", ("ts",)), InputText("b", "y", ("at",))], ["k", "x_ts", "y_ts", "at"])
    ('x_ts', 'at')
    """
    names = {each.lower(): each for each in columns}
    asked = [(each.name, time) for each in inputs for time in each.times or ("",)]
    found = [names.get(f"{name}_{time}".lower()) or names.get(time.lower()) for name, time in asked]
    return tuple(each for each in found if each) if all(found) else ()


# Conditions


def _join_condition(on: Columns) -> str:
    """The clause after a joined relation: equal columns, a condition, or nothing.

    >>> _join_condition("k"), _join_condition("x.k = y.k2"), _join_condition(())
    (' USING (k)', ' ON x.k = y.k2', '')
    """
    columns = columns_of(on)
    if columns is None:
        return f" ON {on}"
    return f" USING ({', '.join(columns)})" if columns else ""


def columns_of(on: Columns) -> list[str] | None:
    """The columns that `on` names; None if it is a condition."""
    if not isinstance(on, str):
        return list(on)
    return [on.strip()] if _COLUMN.fullmatch(on.strip()) else None


def _join_kind(how: str, *, without: bool) -> str:
    """The keywords that join two relations.

    >>> _join_kind("inner", without=False), _join_kind("full", without=False), _join_kind("inner", without=True)
    ('JOIN', 'FULL JOIN', 'CROSS JOIN')
    """
    check_choice("how", how, ("inner", "left", "right", "full"))
    if how == "inner":
        return "CROSS JOIN" if without else "JOIN"
    if without:
        raise RequestError(
            f"a {how} join needs a condition", hint='Write on="k", or a condition such as on="x.k = y.k".'
        )
    return f"{how.upper()} JOIN"


def check_choice(name: str, given: object, known: Sequence[str]) -> None:
    """Refuse an argument that is none of the words it can be."""
    if given not in known:
        raise RequestError(
            f'{name} cannot be "{given}"', hint=f"{did_you_mean(str(given), known)}It is one of {listed(known)}."
        )


# Windows


def _side_windows(within: Lengths | None, rows: Counts | None, partition_by: Columns) -> dict[str, str]:
    """The window of each side that has one.

    >>> _side_windows("5 seconds", None, ())
    {'left': 'RANGE 5 seconds', 'right': 'RANGE 5 seconds'}
    >>> _side_windows({"right": "1 minute"}, {"left": 100}, "k")
    {'left': 'ROWS 100 PARTITION BY k', 'right': 'RANGE 1 minute'}
    """
    columns = columns_of(partition_by) or []
    partition = f" PARTITION BY {', '.join(columns)}" if columns else ""
    if partition and rows is None:
        raise RequestError("partition_by needs rows", hint="Give rows=100 as well.")
    counted = {side: f"ROWS {each}{partition}" for side, each in _by_side("rows", rows, int, "100").items()}
    timed = {
        side: f"RANGE {extent('within', each)}"
        for side, each in _by_side("within", within, Extent, "'5 seconds'").items()
    }
    if twice := counted.keys() & timed.keys():
        raise RequestError(
            f"the {min(twice)} side has both a window of rows and a window of time",
            hint="Give each side one of them: rows={'left': 100}, within={'right': '1 minute'}.",
        )
    return {side: window for side in _SIDES if (window := counted.get(side) or timed.get(side))}


def _by_side(name: str, given: object, kind: type | UnionType, example: str) -> dict[str, object]:
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


def _with_windows(inputs: Sequence[InputText], windows: Mapping[str, str]) -> tuple[InputText, ...]:
    """The inputs to the left of a new one, with the windows that they have or get now."""
    asked = windows.get("left")
    if asked is None or (len(inputs) == 1 and not inputs[0].window):
        return tuple(replace(each, window=asked or each.window) for each in inputs)
    other = next((each for each in inputs if each.window != asked), None)
    if other is not None:
        raise RequestError(
            f'"{other.name}" has the window [{other.window}] in this join already, not [{asked}]'
            if other.window
            else f'the times of "{other.name}" are in a condition of this join already',
            hint="Relations joined one after another are one join with one window per relation: give the same within "
            "every time, give only within={'right': ...} for the new one, or end the first join with .select(...).",
        )
    return tuple(inputs)


def with_window(aggregates: Mapping[str, str], window: str) -> dict[str, str]:
    """The aggregates over a join, with the window after the first: after a relation it would be that relation's window.

    >>> with_window({"n": "count(*)", "s": "sum(x.v)"}, "[RANGE 1 minute SLIDE 1 minute WA x.ts]")
    {'n': 'count(*) [RANGE 1 minute SLIDE 1 minute WA x.ts]', 's': 'sum(x.v)'}
    """
    for name, text in aggregates.items():
        if found := _CALL.search(text):
            return {**aggregates, name: f"{text[: found.end()]} {window}{text[found.end() :]}"}
    raise RequestError("the windows of a join have no aggregate", hint="Say what to compute: .agg(n='count(*)').")


# Errors


def unbounded_join(error: UnboundedState, within: object) -> RequestError:
    """The error for a join whose state has no bound, with a hint that names the arguments of Python."""
    if isinstance(within, Mapping):
        hint = "Give both sides: within={'left': '5 minutes', 'right': '0 seconds'}."
    else:
        hint = "Limit how far apart their times may be, within='5 minutes', or the rows that count, rows=100, or "
        hint += "compare the times in on=."
    return RequestError(error.fact, hint=hint)
