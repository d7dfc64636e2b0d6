"""The window clause of SQL, from the arguments that Python gives."""

from __future__ import annotations

from collections.abc import Sequence

from millrace.api.sql_text.durations import extent
from millrace.errors import RequestError
from millrace.language import months_in

EACH_ROW = "row"
"""The slide of a window that ends at each row."""
UNLIMITED = "unlimited"
"""The range of a window that reaches back to the beginning."""


def window_clause(
    length: object,
    rows: object,
    session: object,
    slide: object,
    by: str | None,
    partition_by: str | Sequence[str],
    *,
    offset: object = None,
    zone: str | None = None,
    limited: bool = False,
) -> str:
    """The window clause; an unlimited window must be `limited` in the number of its groups.

    >>> window_clause("5 minutes", None, None, None, "ts", ()), window_clause(None, 10, None, "row", None, "k")
    ('[RANGE 5 minutes SLIDE 5 minutes WA ts]', '[ROWS 10 PARTITION BY k]')
    >>> window_clause(None, None, "1 minute", None, None, ())
    '[SESSION 1 minute]'
    >>> window_clause("unlimited", None, None, None, None, (), limited=True)
    '[RANGE UNLIMITED PRECEDING]'
    >>> window_clause("1 month", None, None, None, None, (), offset="6 hours", zone="Europe/Berlin")
    "[RANGE 1 month SLIDE 1 month OFFSET 6 hours AT TIME ZONE 'Europe/Berlin']"
    """
    sizes = [each for each in (length, rows, session) if each is not None]
    if len(sizes) != 1:
        raise RequestError(
            "a window has one size", hint="Give one of range='1 minute', rows=100 and session='5 minutes'."
        )
    if not limited and str(length).lower() == UNLIMITED:
        raise RequestError(
            "an unlimited window keeps its groups for ever",
            hint="Limit the number of groups: .window(range='unlimited', state_limit=100_000).",
        )
    columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    parts = [_size(length, rows, session), *_slide(slide, length, rows)]
    parts += [f"PARTITION BY {', '.join(columns)}"] if columns else []
    parts += [] if offset is None else [f"OFFSET {extent('offset', offset)}"]
    parts += [] if zone is None else [f"AT TIME ZONE {_quoted(zone)}"]
    parts += [f"WA {by}"] if by else []
    return f"[{' '.join(parts)}]"


def _quoted(zone: object) -> str:
    if not isinstance(zone, str) or "'" in zone:
        raise RequestError(f'zone is the name of a time zone, not "{zone}"', hint="Write zone='Europe/Berlin'.")
    return f"'{zone}'"


def _size(length: object, rows: object, session: object) -> str:
    if rows is not None:
        return f"ROWS {_number('rows', rows)}"
    if session is not None:
        return f"SESSION {extent('session', session)}"
    unlimited = str(length).lower() == UNLIMITED
    return "RANGE UNLIMITED PRECEDING" if unlimited else f"RANGE {_reach('range', length)}"


def _reach(name: str, given: object) -> str:
    """A length of time, a number, or months such as "3 months"."""
    found = months_in(given.split()) if isinstance(given, str) else None
    return str(given) if found and found[1] == len(str(given).split()) else extent(name, given)


def _slide(slide: object, length: object, rows: object) -> list[str]:
    """The SLIDE of a window; without one, windows that have an end do not overlap."""
    if slide == EACH_ROW:
        return []
    if rows is not None:
        return [f"SLIDE {_number('slide', rows if slide is None else slide)}"]
    if slide is not None:
        return [f"SLIDE {_reach('slide', slide)}"]
    endless = length is None or str(length).lower() == UNLIMITED
    return [] if endless else [f"SLIDE {_reach('range', length)}"]


def _number(name: str, given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise RequestError(f'{name} is a number of rows, not "{given}"', hint=f"Write {name}=100.")
    return given
