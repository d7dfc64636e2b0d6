"""The file formats, and the options that each takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from zoneinfo import available_timezones

from millrace.connectors.files.times.timestamp_patterns import is_pattern, timestamp_pattern
from millrace.connectors.files.times.timestamps import TIMESTAMP_FORMATS, TimeSpelling
from millrace.errors import RequestError, did_you_mean, listed
from millrace.kernel.columns.functions.time_zones import is_zone
from millrace.plan.nodes.endpoints import Connector, Stream

FORMATS = ("csv", "json", "parquet")
"""The file formats, as `FROM` and `TO` spell them."""

_LIMITS = ("max_files_per_trigger", "max_bytes_per_trigger")
_COMMON = ("path", "timestamp_format", "time_zone", "on_malformed", "order_by", "earlier_files", *_LIMITS)
_READING: Mapping[str, tuple[str, ...]] = {
    "csv": (*_COMMON, "header", "delimiter", "quote", "null_value", "null_values"),
    "json": _COMMON,
    "parquet": _COMMON,
}
_WRITING: Mapping[str, tuple[str, ...]] = {
    "csv": ("path", "mode", "header", "delimiter"),
    "json": ("path", "mode"),
    "parquet": ("path", "mode", "compression"),
}
_PLACES = ("folder", "directory", "dir", "file", "files", "filename", "location", "url", "uri", "paths")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "header": ("true", "false"),
    "mode": ("overwrite",),
    "on_malformed": ("fail", "skip"),
    "order_by": ("name", "modified", "arrival"),
    "earlier_files": ("fail", "read"),
    "timestamp_format": TIMESTAMP_FORMATS,
    "compression": ("snappy", "zstd", "gzip", "lz4", "none"),
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The checked options of a file source."""

    header: bool
    delimiter: str
    quote: str
    null_values: tuple[str, ...]
    times: TimeSpelling
    skip_malformed: bool
    order_by: str = "name"
    takes_earlier: bool = False
    """True if files are read that sort before one that was read."""


def extension(format: str) -> str:
    """The ending of file names of a format.

    >>> extension("parquet")
    '.parquet'
    """
    check_format(format)
    return f".{format}"


def read_options(format: str, options: Mapping[str, str]) -> ReadOptions:
    """A source's options with their defaults; refuses options that the format does not have.

    >>> read_options("csv", {"delimiter": ";"}).delimiter
    ';'
    """
    _check(format, options, _READING)
    for key in _LIMITS:
        _positive(options, key)
    order = options.get("order_by", "name").lower()
    if order == "arrival" and "earlier_files" in options:
        raise RequestError(
            "with order_by 'arrival' no file is earlier than another, so earlier_files has no meaning",
            hint="Leave out earlier_files, or say order_by 'name' or 'modified'.",
        )
    several = options["null_values"].split(",") if "null_values" in options else []
    alone = [options["null_value"]] if "null_value" in options else []
    return ReadOptions(
        header=options.get("header", "true").lower() == "true",
        delimiter=_character(options, "delimiter", ","),
        quote=_character(options, "quote", '"'),
        null_values=("", *alone, *several),
        times=_time_spelling(options),
        skip_malformed=options.get("on_malformed", "fail").lower() == "skip",
        order_by=order,
        takes_earlier=options.get("earlier_files", "fail").lower() == "read",
    )


def reading(stream: Stream) -> Connector:
    """A stream's connector; malformed rows are left out where the stream sets them aside and nothing else is said."""
    connector = stream.connector
    if stream.quarantine_into is None or "on_malformed" in connector.options:
        return connector
    return replace(connector, options={**connector.options, "on_malformed": "skip"})


def _time_spelling(options: Mapping[str, str]) -> TimeSpelling:
    value, zone = options.get("timestamp_format", "iso"), options.get("time_zone", "UTC")
    # The letters of a pattern are great or small.
    format = value if is_pattern(value) else value.lower()
    if not is_zone(zone):
        raise RequestError(
            f'there is no time zone "{zone}"',
            hint=f"{did_you_mean(zone, available_timezones())}Write a name such as 'Europe/Berlin', or '+02:00'.",
        )
    says_zone = timestamp_pattern(format).has_zone if is_pattern(format) else format != "iso"
    if "time_zone" in options and says_zone:
        raise RequestError(
            f'a time zone has no effect with timestamp_format "{value}"',
            hint="Such times have a zone already: leave the time zone out.",
        )
    return TimeSpelling(format, zone)


def check_write_options(format: str, options: Mapping[str, str]) -> None:
    """Refuse a sink's format, or options that the format does not have."""
    _check(format, options, _WRITING)
    _character(options, "delimiter", ",")


def check_format(format: str) -> None:
    """Refuse a format that is not in `FORMATS`."""
    if format not in FORMATS:
        raise RequestError(
            f'there is no file format "{format}"',
            hint=f"{did_you_mean(format, FORMATS)}The formats are {listed(FORMATS)}.",
        )


def _check(format: str, options: Mapping[str, str], known: Mapping[str, tuple[str, ...]]) -> None:
    check_format(format)
    for key, value in options.items():
        if key not in known[format]:
            meant = 'Did you mean "path"? ' if key in _PLACES else did_you_mean(key, known[format], near=0.7)
            hint = f"{meant}The options are {listed(known[format])}."
            raise RequestError(f'format "{format}" has no option "{key}"', hint=hint)
        if key == "timestamp_format" and is_pattern(value):
            timestamp_pattern(value)
        elif key in _CHOICES and value.lower() not in _CHOICES[key]:
            pattern = ", or a pattern such as 'dd/MM/yyyy HH:mm'" if key == "timestamp_format" else ""
            hint = f"{did_you_mean(value, _CHOICES[key])}It takes {listed(_CHOICES[key])}{pattern}."
            raise RequestError(f'option "{key}" does not take "{value}"', hint=hint)


def _character(options: Mapping[str, str], key: str, default: str) -> str:
    value = {"\\t": "\t", "tab": "\t"}.get(options.get(key, default), options.get(key, default))
    if len(value) != 1 or not value.isascii():
        raise RequestError(f'option "{key}" does not take "{value}"', hint="It takes one ASCII character, or \\t.")
    return value


def _positive(options: Mapping[str, str], key: str) -> None:
    if key in options and not re.fullmatch(r"0*[1-9]\d*", options[key]):
        raise RequestError(f'option "{key}" does not take "{options[key]}"', hint="It takes a whole number above zero.")
