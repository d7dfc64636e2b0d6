"""What was found out, in words, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.hosts.why.verdicts import length_text
from millrace.plan.explain.time_text import clock_text
from millrace.survey.column_kinds import ColumnKind
from millrace.survey.file_shape import FileShape
from millrace.survey.key_choice import KeyChoice
from millrace.survey.proposal import Proposal
from millrace.survey.time_profile import TimeProfile
from millrace.survey.topic_shape import TopicShape

_SHOWN = 16
"""Partitions that are told one by one."""


def findings_text(found: Proposal) -> Iterator[str]:
    """The findings, one per line."""
    shape, rows = found.shape, found.rows
    which = "" if rows.whole else f"{rows.which} "
    what = f"{which}{_counted(rows.rows, 'row')}, {_counted(len(found.kinds), 'column')}"
    yield f"{shape.path}: {shape.format}{_of(shape)}, {what}"
    if isinstance(shape, TopicShape):
        remark = f"; {shape.remark}" if shape.remark else ""
        yield _line("format", f"{shape.format}{remark}", shape.sure["format"])
    if shape.format == "csv":
        delimiter = {"\\t": "tab"}.get(shape.options.get("delimiter", ","), shape.options.get("delimiter", ","))
        yield _line("delimiter", delimiter, shape.sure["delimiter"])
    if shape.format == "csv" and isinstance(shape, FileShape):
        header = "none; columns are numbered" if "header" in shape.options else "the first line names the columns"
        yield _line("header", header, shape.sure["header"])
    if found.null_words:
        yield _line("nulls", f"written as {', '.join(found.null_words)}", "likely")
    if rows.malformed:
        yield _line("malformed", f"{_counted(rows.malformed, 'row')} that cannot be read: skipped", "sure")
    if rows.left_out:
        names = ", ".join(map(repr, rows.left_out))
        yield _line("left out", f"columns without a name, with that of another, or of no known type: {names}", "sure")
    for kind in found.kinds:
        if kind.nearly:
            yield _line("column", f"{kind.name} is text because of values such as {kind.nearly!r}", "sure")
    yield from _time_lines(found)
    for key in found.keys:
        yield _line("key", f"{key.column}: {key_text(key)}", "a guess")


def _of(shape: FileShape | TopicShape) -> str:
    if isinstance(shape, TopicShape):
        return " messages"
    return f", {len(shape.files):,} files" if len(shape.files) > 1 else ""


def _time_lines(found: Proposal) -> Iterator[str]:
    if found.time is None or found.profile is None:
        yield _line("time", "no column looks like a time", "a guess")
        return
    others = f"; or {', '.join(each.label for each in found.times[1:])}" if found.times[1:] else ""
    either = f" (or {found.time.either})" if found.time.either else ""
    yield _line("time", f"{found.time.label}, {found.time.format}{either}{others}", found.time.sure)
    if found.time.unfit:
        yield _line(
            "malformed", f"{_counted(found.time.unfit, 'row')} without a time there, but other text: skipped", "sure"
        )
    yield _line("disorder", disorder_text(found.profile), "measured")
    for line in partition_lines(found):
        yield _line("partition", line, "measured")
    yield _line("gaps", gap_text(found.profile), "measured")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _line(what: str, text: str, sure: str) -> str:
    return f"  {what:<10} {text} [{sure}]"


def disorder_text(profile: TimeProfile, *, short: bool = False) -> str:
    """How far rows are out of order."""
    if not profile.worst:
        return "in order" if short else "the rows are in order of time"
    part = 100 * profile.late_rows / profile.rows
    if short:
        return f"{part:.1f} % out of order, the worst by {part_text(profile.worst)}"
    return (
        f"{part:.1f} % of rows are out of order: half of them by at most {part_text(profile.half)}; "
        f"of all rows 99 % by at most {part_text(profile.most)}, 99.9 % by {part_text(profile.nearly_all)}, "
        f"the worst by {part_text(profile.worst)}"
    )


def partition_lines(found: Proposal) -> Iterator[str]:
    """How far the rows of each partition are out of order, and how far each has come; the first of many."""
    for name, own in list(found.partitions.items())[:_SHOWN]:
        order = "" if own is None else f", {disorder_text(own, short=True)}, up to {clock_text(own.last)}"
        yield f"{name}: {_counted(found.rows.parts[name], 'row')}{order}"
    if len(found.partitions) > _SHOWN:
        yield f"and {len(found.partitions) - _SHOWN:,} more"


def gap_text(profile: TimeProfile) -> str:
    """How long nothing comes."""
    return (
        f"from one time to the next: {part_text(profile.usual_gap)} in the median, at most "
        f"{part_text(profile.long_gap)} in 99 % of cases, {part_text(profile.longest_gap)} at the longest"
    )


def key_text(key: KeyChoice) -> str:
    """How often a key comes."""
    return f"{key.keys:,} keys, {key.rows_per_key:,.0f} rows each"


def null_text(kind: ColumnKind) -> str:
    """How many values are missing."""
    if not kind.nulls:
        return "no nulls"
    return "all null" if kind.nulls == kind.rows else f"{100 * kind.nulls / kind.rows:.2g} % null"


def part_text(micros: int) -> str:
    """A length of time, to the microsecond where it is short."""
    return f"{micros:,} µs" if 0 < micros < 1_000 else length_text(micros)
