"""The clauses of CREATE STREAM that are understood and checked, but have no engine part yet."""

from __future__ import annotations

from millrace.errors import NotYet, Place, QueryError
from millrace.language.statements import StreamStatement, TimeClause


def refuse_later_clauses(statement: StreamStatement, time: TimeClause) -> None:
    """Raise `NotYet` for the first clause that cannot run, with what to write meanwhile."""
    if time.punctuated_by is not None:
        raise _not_yet("PUNCTUATED BY", "Use DISORDER INTERVAL with the longest delay you expect.", time.place)
    if time.rows is not None:
        _check_rows(time)
        raise _not_yet("DISORDER ... ROWS", "Use DISORDER INTERVAL with the longest delay you expect.", time.place)
    if statement.partitioned is not None:
        raise _not_yet(
            "PARTITIONED BY",
            "Leave it out and declare DISORDER that covers all partitions.",
            statement.partitioned.place,
        )
    if statement.ets is not None and statement.ets.kind == "every":
        raise _not_yet("ETS EVERY", "Use ETS ON DEMAND.", statement.ets.place)
    if statement.update_key is not None:
        raise _not_yet("UPDATE KEY", "Leave it out: every row is then kept.", statement.update_key.place)
    if statement.late_into is not None:
        raise _not_yet("LATE INTO", "Leave it out: late rows are counted.", statement.late_into.place)


def _check_rows(time: TimeClause) -> None:
    assert time.rows is not None
    if not time.rows.text.isdigit():
        raise QueryError(
            "DISORDER ... ROWS takes a whole number", hint="Write DISORDER 100 ROWS.", place=time.rows.place
        )


def _not_yet(clause: str, hint: str, place: Place) -> NotYet:
    return NotYet(f"{clause} has no engine part yet", hint=hint, place=place)
