"""The script that `millrace new` writes: a stream and a query that run as they are; comments say what was measured."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.columns.sql_types import sql_name
from millrace.survey.column_kinds import ColumnKind
from millrace.survey.findings_text import (
    disorder_text,
    gap_text,
    key_text,
    null_text,
    part_text,
    partition_lines,
)
from millrace.survey.proposal import Proposal
from millrace.survey.time_profile import SECOND, interval_at_least

_LULL = 10 * SECOND
_WORDS = frozenset(
    """all and any as asc at between both by case cast check column cross current date day default desc distinct each
    else end escape except exists explode false filter following for from full group having hour if in index inner
    insert interval into intersect is join key lateral left like limit minute month natural not null on or order outer
    over partition preceding primary range right rows second select session set some start table then time timestamp to
    true type union unique unknown update user using values view when where window with year""".split()  # noqa: SIM905
)
"""Names that are put in quotes, to be sure."""


def script_text(found: Proposal, file: str) -> str:
    """The script, to be written to a file of this name."""
    lines = [*_head(found, file), "", *_stream(found), "", *_queries(found)]
    return "\n".join(lines) + "\n"


def name_text(name: str) -> str:
    """A name as SQL takes it.

    >>> name_text("price"), name_text("order"), name_text("unit price")
    ('price', '`order`', '`unit price`')
    """
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.lower() not in _WORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def _head(found: Proposal, file: str) -> Iterator[str]:
    yield f"-- Written by millrace new, from {found.rows.which} {found.rows.rows:,} rows of {found.shape.path}."
    yield f"-- Check it:  millrace check {file}"
    yield f"-- Run it:    millrace run {file} --on local --until-end"
    if found.partitions:
        yield f"-- Live:      millrace run {file} --on local --checkpoint {found.name}_state"


def _stream(found: Proposal) -> Iterator[str]:
    if found.rows.left_out:
        names = ", ".join(map(repr, found.rows.left_out))
        yield f"-- Not declared, because each needs a name and a type of its own: {names}."
    yield f"CREATE STREAM {name_text(found.name)} ("
    yield from _columns(found)
    yield ")"
    yield from _time(found)
    for key in found.keys:
        yield f"  -- UPDATE KEY ({name_text(key.column)})  -- if a row replaces the one before it: {key_text(key)}"
    yield f"  FROM {found.shape.connector().format} OPTIONS ({_options(found)});"


def _columns(found: Proposal) -> Iterator[str]:
    texts = [f"  {name_text(kind.name)} {sql_name(found.declared(kind))}" for kind in found.kinds]
    remarks = [_remark(kind) for kind in found.kinds]
    if found.time is not None and found.time.path:
        value = ".".join(map(name_text, found.time.path))
        texts.append(f"  {name_text(found.time.column)} TIMESTAMP AS {found.time.reader.format(value)}")
        remarks.append("computed: the time stands inside another column")
    texts = [text + ("," if place < len(texts) - 1 else "") for place, text in enumerate(texts)]
    width = min(max(map(len, texts)), 40)
    for text, remark in zip(texts, remarks, strict=True):
        yield f"{text:<{width}}  -- {remark}"


def _remark(kind: ColumnKind) -> str:
    notes = [null_text(kind)]
    notes += [f"{kind.distinct:,} different values"] if kind.distinct else []
    notes += ["numbers with a decimal comma"] if kind.comma_numbers else []
    notes += [f"nearly all are numbers, but not {kind.nearly!r}"] if kind.nearly else []
    return "; ".join(note.replace("\n", " ") for note in notes if note)


def _time(found: Proposal) -> Iterator[str]:
    if found.time is None or found.profile is None:
        yield "  -- No column looks like a time: rows are stamped when an operator needs it."
        yield "  LATENT TIMESTAMP"
        return
    time, profile = found.time, found.profile
    if time.either:
        yield f"  -- The times could also be read as {time.either}: then change timestamp_format."
    others = [f"{each.label} ({each.format})" for each in found.times[1:]]
    if others:
        yield f"  -- Other columns that could be the time: {', '.join(others)}."
    if time.unfit:
        yield f"  -- {time.unfit:,} rows have other text there: they are skipped, and counted as quarantined."
    if time.nulls:
        yield f"  -- {time.nulls:,} rows have no time: they are set aside, and counted as quarantined."
    yield f"  -- {disorder_text(profile)}"
    if profile.worst:
        yield "  -- A shorter DISORDER gives results sooner, and sets later rows aside."
    yield from (f"  -- {line}" for line in partition_lines(found))
    order = f"DISORDER {interval_at_least(profile.worst)}" if profile.worst else "ORDERED"
    yield f"  TIMESTAMP BY {name_text(time.column)} {order}"
    for key in found.keys:
        if profile.worst and key.worst is not None and key.worst <= profile.worst // 2:
            each = "are in order" if not key.worst else f"are out of order by at most {part_text(key.worst)}"
            yield f"  -- PARTITIONED BY ({name_text(key.column)})  -- the rows of each {key.column} {each}"
    yield f"  -- {gap_text(profile)}"
    if found.partitions:
        gaps = [own.long_gap for own in found.partitions.values() if own]
        lull = interval_at_least(max([_LULL, profile.worst, *gaps]))
        yield "  -- The stream waits for each of its partitions, but for one that has sent nothing for this long:"
        yield f"  ETS ON DEMAND LULL {lull}"
        return
    skew = max(profile.worst, profile.long_gap, SECOND)
    yield f"  -- ETS ON DEMAND SKEW {interval_at_least(skew)}  -- in a live run: do not wait when the stream is silent"


def _options(found: Proposal) -> str:
    options = dict(found.shape.connector().options)
    if found.time is not None and found.time.format != "iso" and not found.time.path:
        options["timestamp_format"] = found.time.format
    if found.null_words:
        options["null_values"] = ",".join(found.null_words)
    if found.rows.malformed or (found.time is not None and found.time.unfit):
        options["on_malformed"] = "skip"
    return ", ".join(f"{name} '{value.replace(chr(39), chr(39) * 2)}'" for name, value in options.items())


# Queries


def _queries(found: Proposal) -> Iterator[str]:
    stream = name_text(found.name)
    if found.time is None or found.profile is None:
        yield f"CREATE QUERY {name_text(found.name + '_rows')} AS"
        yield f"  SELECT * FROM {stream};"
        return
    length = interval_at_least(found.profile.window).removeprefix("INTERVAL ")
    window = f"{stream} [RANGE {length} SLIDE {length} WA {name_text(found.time.column)}]"
    yield f"CREATE QUERY {name_text(found.name + '_counts')} AS"
    yield f"  SELECT window_start, window_end, count(*) AS n{_sums(found)}"
    yield f"  FROM {window};"
    for key in found.keys[:1]:
        yield ""
        yield f"-- The same for each {key.column}:"
        yield f"-- CREATE QUERY {name_text(found.name + '_by_key')} AS"
        yield f"--   SELECT window_start, {name_text(key.column)}, count(*) AS n"
        yield f"--   FROM {window} GROUP BY {name_text(key.column)};"


def _sums(found: Proposal) -> str:
    """The mean of a column, as an example."""
    for kind in found.kinds:
        if kind.comma_numbers:
            number = f"CAST(replace({name_text(kind.name)}, ',', '.') AS DOUBLE)"
            return f", avg({number}) AS {name_text('avg_' + kind.name)}"
        if pa.types.is_floating(found.declared(kind)):
            return f", avg({name_text(kind.name)}) AS {name_text('avg_' + kind.name)}"
    return ""
