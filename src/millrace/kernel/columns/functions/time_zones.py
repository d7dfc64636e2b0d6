"""Times of other zones, as Java has it: a clock time that occurs twice is the earlier one, a skipped one moves on.

Arrow says what a clock shows at a time. The way back is found with the offsets of the day before and after.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.functions.calendar_functions import DAY, SECOND, make_time, micros_of, times_of
from millrace.kernel.columns.functions.distinct_arguments import Kernel
from millrace.kernel.columns.nested.nested_columns import over_columns

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago",
    "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00", "Z": "UTC", "GMT": "UTC", "UT": "UTC",
}  # fmt: skip
"""Java's short names of zones."""


@lru_cache(maxsize=256)
def _fixed(zone: str) -> int | None:
    """The microseconds that a fixed zone is ahead of UTC; None for a zone that has a name."""
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return 0 if zone == "UTC" else None
    hours, minutes, seconds = (int(each or 0) for each in found.groups()[1:])
    total = hours * 3_600 + minutes * 60 + seconds
    if total > 18 * 3_600:
        raise pa.ArrowInvalid(f'no zone is "{zone}"')
    return (-total if found[1] == "-" else total) * SECOND


def offsets_of(micros: Any, zone: str) -> Any:
    """How far the clock of a zone is ahead of UTC at times; raises ArrowInvalid for a zone that is not known."""
    zone = _SHORT.get(zone, zone)
    fixed = _fixed(zone)
    if fixed is not None:
        return np.full(len(micros), fixed)
    try:
        local = pc.local_timestamp(pc.cast(pa.array(micros), pa.timestamp("us", tz=zone)))
    except pa.ArrowException:
        raise pa.ArrowInvalid(f'no zone is "{zone}"') from None
    return np.asarray(pc.cast(local, pa.int64())) - micros


def is_zone(name: str) -> bool:
    """True if a zone has this name."""
    try:
        offsets_of(np.zeros(1, np.int64), name)
    except pa.ArrowInvalid:
        return False
    return True


def _to_clock(micros: Any, zone: str) -> Any:
    return micros + offsets_of(micros, zone)


def _of_clock(clock: Any, zone: str) -> Any:
    before, after = offsets_of(clock - DAY, zone), offsets_of(clock + DAY, zone)
    right = offsets_of(clock - before, zone) == before
    later = offsets_of(clock - after, zone) == after
    return clock - np.where(right | ~later, before, after)


def _by_zone(convert: Callable[[Any, str], Any]) -> Kernel:
    """A function of times and of the name of a zone, computed zone by zone."""

    @over_columns
    def compute(times: pa.Array, zones: pa.Array) -> pa.Array:
        encoded = zones.dictionary_encode()
        places = np.asarray(encoded.indices.fill_null(-1))
        micros = micros_of(times).copy()
        for place, name in enumerate(encoded.dictionary.to_pylist()):
            chosen = places == place
            micros[chosen] = convert(micros[chosen], name)
        return times_of(micros, np.asarray(pc.or_(times.is_null(), zones.is_null())))

    return compute


_from_utc, _to_utc = _by_zone(_to_clock), _by_zone(_of_clock)


def _converted(source: Any, target: Any, time: Any) -> Any:
    return _from_utc(_to_utc(time, source), target)


def _make_timestamp(*parts: Any) -> Any:
    return make_time(*parts) if len(parts) == 6 else _to_utc(make_time(*parts[:6]), parts[6])


ZONE_FUNCTIONS: dict[str, Kernel] = {
    "from_utc_timestamp": _from_utc,
    "to_utc_timestamp": _to_utc,
    "convert_timezone": _converted,
    "make_timestamp": _make_timestamp,
}
