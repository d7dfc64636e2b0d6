"""Windows that do not begin at multiples of their slide in UTC: OFFSET, AT TIME ZONE, and months."""

from __future__ import annotations

from millrace.errors import QueryError
from millrace.language.expressions.zone_names import check_zone
from millrace.language.grammar.statements import Length, MonthLength, NumberOfRows, WindowClause
from millrace.language.grammar.text.lengths import measured
from millrace.language.windows.extents import LONGEST, extent
from millrace.plan.nodes.aggregate_nodes import ClockWindow, Unit, Window

_MOST_MONTHS = 12_000
_EXAMPLE = "[RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'Europe/Berlin']"


def is_by_clock(clause: WindowClause) -> bool:
    """True if a window with SLIDE says where it begins, or is of months."""
    moved = clause.offset is not None or clause.zone is not None
    return clause.slide is not None and (moved or isinstance(clause.size, MonthLength))


def refuse_clock(clause: WindowClause) -> None:
    """Refuse OFFSET, AT TIME ZONE and months where windows do not follow a clock."""
    if isinstance(clause.size, MonthLength):
        raise QueryError(
            "SESSION takes no months" if clause.kind == "session" else "RANGE takes months only together with SLIDE",
            hint="Write [RANGE 1 MONTH SLIDE 1 MONTH], or a length such as 30 DAYS.",
            place=clause.size.place,
        )
    for name, given in (("OFFSET", clause.offset), ("AT TIME ZONE", clause.zone)):
        if given is not None:
            raise QueryError(
                f"{name} is for windows with RANGE and SLIDE",
                hint=f"Write for example {_EXAMPLE}, or leave {name} out.",
                place=given.place,
            )


def clock_window(clause: WindowClause, unit: Unit) -> Window | ClockWindow:
    """The windows of a clause with SLIDE that says where they begin, or is of months."""
    months = isinstance(clause.size, MonthLength)
    if months != isinstance(clause.slide, MonthLength):
        raise QueryError(
            "a window has months in one of RANGE and SLIDE, and a length of time in the other",
            hint="Write [RANGE 3 MONTHS SLIDE 1 MONTH] with months, or [RANGE 90 DAYS SLIDE 1 DAY] with lengths.",
            place=clause.place,
        )
    _check_unit(clause, unit)
    zone = "UTC" if clause.zone is None else check_zone(clause.zone)
    if months:
        size, slide = _number(clause.size, "RANGE"), _number(clause.slide, "SLIDE")
        return ClockWindow(size, slide, _offset(clause, unit), zone, months=True)
    size, slide = extent(clause.size, "RANGE", unit), extent(clause.slide, "SLIDE", unit)
    origin = _offset(clause, unit) % slide
    return Window(size, slide, origin, unit) if zone == "UTC" else ClockWindow(size, slide, origin, zone)


def _check_unit(clause: WindowClause, unit: Unit) -> None:
    """Refuse zones and months where rows progress by a number."""
    odd = clause.zone or (clause.size if isinstance(clause.size, MonthLength) else None)
    if unit != "time" and odd is not None:
        raise QueryError(
            "the rows progress by a BIGINT, which has neither months nor a time zone",
            hint="Write numbers without a unit: [RANGE 10 SLIDE 5 OFFSET 2].",
            place=odd.place,
        )


def _number(size: Length | MonthLength | NumberOfRows | None, what: str) -> int:
    assert isinstance(size, MonthLength)
    if not 1 <= size.months <= _MOST_MONTHS:
        raise QueryError(f"{what} is not from 1 to {_MOST_MONTHS:,} months", hint="Write 1 MONTH.", place=size.place)
    return size.months


def _offset(clause: WindowClause, unit: Unit) -> int:
    if clause.offset is None:
        return 0
    offset = measured(clause.offset, unit, "OFFSET")
    if abs(offset) > LONGEST:
        raise QueryError("OFFSET is too long", hint="It is at most 1,000,000 days.", place=clause.offset.place)
    return offset
