"""The clauses of as-of joins and sequences in SQL, from the arguments that Python gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from millrace.api.sql_text.durations import interval
from millrace.api.sql_text.join_text import Columns, InputText, check_choice, columns_of
from millrace.errors import RequestError

Mode = Literal["recent", "chronicle"]


def asof_condition(left: InputText, right: InputText, on: Columns, tolerance: object, *, strict: bool) -> str:
    """The condition of an as-of join: the latest right row that is not after the left row.

    >>> trades, quotes = InputText("trades", "t", ("ts",)), InputText("quotes", "q", ("at",))
    >>> asof_condition(trades, quotes, "k", "5 seconds", strict=False)
    ' MATCH_CONDITION (q.at <= t.ts AND q.at >= t.ts - INTERVAL 5 seconds) USING (k)'
    >>> asof_condition(trades, quotes, "t.a = q.b", None, strict=True)
    ' ON q.at < t.ts AND t.a = q.b'
    """
    earlier, later = _time(right), _time(left)
    before = "<=" if right.ends else "<" if strict or left.ends else "<="
    times = [f"{earlier} {before} {later}"]
    if tolerance is not None:
        times.append(f"{earlier} >= {later} - {interval('tolerance', tolerance)}")
    columns = columns_of(on)
    if columns:
        return f" MATCH_CONDITION ({' AND '.join(times)}) USING ({', '.join(columns)})"
    return f" ON {' AND '.join([*times, *([str(on)] if columns is None else [])])}"


def _time(side: InputText) -> str:
    if len(side.times) != 1:
        raise RequestError(
            f'"{side.name}" has no time column to look back from',
            hint="Declare its stream with time= or internal=, or name the columns of both: by=('ts', 'ts').",
        )
    return f"{side.name}.{side.times[0]}"


def looked_from(inputs: Sequence[InputText], by: str | None, side: str = "left") -> InputText:
    """The input whose time an as-of join uses on one side: the only one, or the one that `by` names.

    >>> a, b = InputText("a", "a", ("ts",)), InputText("b", "b", ("at",))
    >>> looked_from([a], None) == a, looked_from([a, b], "b.at") == b, looked_from([a], "seen").times
    (True, True, ('seen',))
    """
    name, _, column = (by or "").rpartition(".")
    for each in inputs:
        if by and (name.lower() == each.name.lower() or (not name and len(inputs) == 1)):
            return replace(each, times=(column,))
    if by:
        raise RequestError(f'the rows to look back from have no time "{by}"', hint=_which_time(inputs, side))
    if len(inputs) > 1 or len(inputs[0].times) > 1:
        raise RequestError("joined rows have several times to look back from", hint=_which_time(inputs, side))
    return inputs[0]


def _which_time(inputs: Sequence[InputText], side: str) -> str:
    """The hint that says how to name the time to look back from."""
    known = [f"{each.name}.{time}" for each in inputs for time in each.times or ("ts",)]
    known = list(inputs[0].times) if len(inputs) == 1 and len(inputs[0].times) > 1 else known
    forms = [f"by=('{each}', 'ts')" if side == "left" else f"by=('ts', '{each}')" for each in known]
    return f"Say which, beside that of the other relation: {' or '.join(forms)}."


def asof_kind(how: str) -> str:
    """The keywords of an as-of join that drops rows without a match (inner) or keeps them (left)."""
    check_choice("how", how, ("inner", "left"))
    return "ASOF JOIN" if how == "inner" else "ASOF LEFT JOIN"


def sequence_clauses(inputs: Sequence[InputText], on: Columns, mode: str, within: object, *, outer: bool) -> str:
    """The clauses after the streams of a sequence.

    >>> inputs = [InputText(name, name) for name in "abc"]
    >>> sequence_clauses(inputs, "k", "chronicle", "5 minutes", outer=True)
    ' ON a.k = b.k AND b.k = c.k MODE CHRONICLE OUTER WITHIN INTERVAL 5 minutes'
    """
    columns = columns_of(on)
    if columns is None:
        conditions = [str(on)]
    else:
        conditions = [f"{a.name}.{each} = {b.name}.{each}" for a, b in pairwise(inputs) for each in columns]
    clauses = [f"ON {' AND '.join(conditions)}"] if conditions else []
    clauses += [f"MODE {mode.upper()}", *(["OUTER"] if outer else [])]
    clauses += [f"WITHIN {interval('within', within)}"] if within is not None else []
    return "".join(f" {each}" for each in clauses)


def check_sequence(mode: str, relations: int, *, limited: bool) -> None:
    """Refuse a sequence of one relation, and one whose state has no bound."""
    check_choice("mode", mode, ("recent", "chronicle"))
    if relations < 2:
        raise RequestError("a sequence needs two relations or more", hint="Write a.seq(b), or a.seq(b, c).")
    if mode == "chronicle" and not limited:
        raise RequestError(
            "a chronicle keeps unused rows for ever",
            hint="Limit the time with within='5 minutes', or the number of rows with state_limit=100_000.",
        )
