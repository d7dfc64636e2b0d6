"""Timestamps as files spell them <-> Arrow timestamps in microseconds, UTC.

Rules:
- Text without a zone is of the zone that the stream names, else UTC; an hour that its clock repeats is the earlier.
- Anything finer than a microsecond is floored, before 1970 too.
- Null stays null; other text raises Arrow's own error, and the caller looks for the cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.files.times.timestamp_patterns import is_pattern, timestamp_pattern
from millrace.kernel.columns.functions.time_zones import ZONE_FUNCTIONS
from millrace.kernel.elements import TIMESTAMP

Values = Any  # pa.Array; pyarrow has no types to check against

_NAIVE = pa.timestamp("us")
_UNITS = {"epoch_seconds": "s", "epoch_millis": "ms", "epoch_micros": "us", "epoch_nanos": "ns"}
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
TIMESTAMP_FORMATS = ("iso", *_UNITS)
"""What the option `timestamp_format` takes, beside patterns."""

# Nine digits after the point, and before it the greatest second an int64 of microseconds can hold.
_EXACT = pa.decimal128(28, 9)
_ZONED = r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"


@dataclass(frozen=True, slots=True)
class TimeSpelling:
    """How files spell times: their format, and the zone of those that name none."""

    format: str
    zone: str = "UTC"

    def to_utc(self, values: Values) -> Values:
        """Times that were read as if they were UTC, as what they are."""
        return values if self.zone == "UTC" else ZONE_FUNCTIONS["to_utc_timestamp"](values, pa.scalar(self.zone))


def timestamps(values: Values, spelling: TimeSpelling) -> Values:
    """Text, numbers or times of any unit as timestamps.

    >>> timestamps(pa.array(["1704067200.25"]), TimeSpelling("epoch_seconds")).cast(pa.int64()).to_pylist()
    [1704067200250000]
    """
    kind, format = values.type, spelling.format
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        found = _from_time(values)
        return found if pa.types.is_timestamp(kind) and kind.tz is not None else spelling.to_utc(found)
    if pa.types.is_string(kind) and is_pattern(format):
        pattern = timestamp_pattern(format)
        found = pattern.read(tidy(values))
        return found if pattern.has_zone else spelling.to_utc(found)
    if pa.types.is_string(kind):
        return _from_iso(values, spelling) if format == "iso" else _from_epoch_text(values, _UNITS[format])
    if format == "iso" or is_pattern(format):
        raise pa.ArrowInvalid("a number is no text of a time")
    return _from_number(values, _UNITS[format])


def text_of(values: Values) -> Values:
    """Timestamps as ISO text in UTC, with a fraction only where there is one."""
    text = pc.cast(pc.cast(values, _NAIVE), pa.string())
    return pc.replace_substring_regex(text, r"\.000000$", "")


def _from_time(values: Values) -> Values:
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        # A cast would cut towards 1970.
        values = pc.floor_temporal(values, unit="microsecond")
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        return pc.cast(values, TIMESTAMP)
    return pc.cast(pc.cast(values, _NAIVE), TIMESTAMP)


def _from_iso(text: Values, spelling: TimeSpelling) -> Values:
    try:
        return spelling.to_utc(pc.cast(pc.cast(text, _NAIVE), TIMESTAMP))
    except pa.ArrowInvalid:
        pass
    try:
        return pc.cast(text, TIMESTAMP)
    except pa.ArrowInvalid:
        return _from_mixed_iso(text, spelling)


def _from_mixed_iso(text: Values, spelling: TimeSpelling) -> Values:
    """Text of which some has a zone, or is finer than a microsecond."""
    coarse = pc.replace_substring_regex(tidy(text), r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(coarse, _ZONED)
    nothing = pa.scalar(None, pa.string())
    local = spelling.to_utc(pc.cast(pc.cast(pc.if_else(zoned, nothing, coarse), _NAIVE), TIMESTAMP))
    return pc.coalesce(local, pc.cast(pc.if_else(zoned, coarse, nothing), TIMESTAMP))


def _from_epoch_text(text: Values, unit: str) -> Values:
    try:
        return _from_integer(pc.cast(text, pa.int64()), unit)
    except pa.ArrowInvalid:
        short = pc.replace_substring_regex(tidy(text), r"(\.\d{9})\d+", r"\1")
        return _from_decimal(pc.cast(short, _EXACT), unit)


def _from_number(values: Values, unit: str) -> Values:
    if pa.types.is_integer(values.type):
        return _from_integer(pc.cast(values, pa.int64()), unit)
    if pa.types.is_decimal(values.type):
        return _from_decimal(pc.cast(values, _EXACT), unit)
    # A double holds microseconds of this century exactly, but not their decimal spelling: hence round, not floor.
    factor = _MICROSECONDS.get(unit, 1)
    micros = pc.round(pc.multiply(pc.cast(values, pa.float64()), float(factor)))
    return _from_integer(pc.cast(micros, pa.int64()), "us" if unit in _MICROSECONDS else unit)


def _from_decimal(values: Values, unit: str) -> Values:
    factor = pa.scalar(Decimal(_MICROSECONDS.get(unit, 1)), pa.decimal128(7, 0))
    whole = pc.cast(pc.floor(pc.multiply(values, factor)), pa.int64())
    return _from_integer(whole, "us" if unit in _MICROSECONDS else unit)


def _from_integer(values: Values, unit: str) -> Values:
    return _from_time(pc.cast(values, pa.timestamp(unit, tz="UTC")))


def tidy(text: Values) -> Values:
    """Text without surrounding blanks; null where nothing remains."""
    trimmed = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
