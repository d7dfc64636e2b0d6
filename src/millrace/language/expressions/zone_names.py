"""Names of time zones."""

from __future__ import annotations

from zoneinfo import available_timezones

from millrace.errors import QueryError, did_you_mean
from millrace.kernel.columns.functions.time_zones import is_zone
from millrace.language.grammar.statements import Name


def check_zone(zone: Name) -> str:
    """The name of a time zone; refuses one that is not known."""
    if is_zone(zone.text):
        return zone.text
    raise QueryError(
        f'there is no time zone "{zone.text}"',
        hint=f"{did_you_mean(zone.text, available_timezones())}Write a name such as 'Europe/Berlin', or '+02:00'.",
        place=zone.place,
    )
