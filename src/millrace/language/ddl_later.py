"""The clauses of CREATE STREAM that are understood and checked, but have no engine part yet."""

from __future__ import annotations

from millrace.errors import NotYet, Place
from millrace.language.statements import StreamStatement


def refuse_later_clauses(statement: StreamStatement) -> None:
    """Raise `NotYet` for the first clause that cannot run, with what to write meanwhile."""
    if statement.update_key is not None:
        raise _not_yet("UPDATE KEY", "Leave it out: every row is then kept.", statement.update_key.place)


def _not_yet(clause: str, hint: str, place: Place) -> NotYet:
    return NotYet(f"{clause} has no engine part yet", hint=hint, place=place)
