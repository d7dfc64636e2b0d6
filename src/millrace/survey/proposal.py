"""All that was found out about a path, as one record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from millrace.connectors.kafka.message_columns import is_of_message
from millrace.errors import RequestError
from millrace.kernel.elements import TIMESTAMP
from millrace.survey.column_kinds import NULL_WORDS, ColumnKind, column_kind
from millrace.survey.file_shape import FileShape, file_shape
from millrace.survey.key_choice import KeyChoice, key_choices
from millrace.survey.nested_times import nested_times
from millrace.survey.sampled_messages import sampled_messages
from millrace.survey.sampled_rows import SampledRows, sampled_rows
from millrace.survey.time_choice import Micros, TimeChoice, time_choices
from millrace.survey.time_profile import TimeProfile, time_profile
from millrace.survey.topic_messages import TopicMessages, is_topic, topic_messages
from millrace.survey.topic_shape import TopicShape, topic_shape


@dataclass(frozen=True)
class Proposal:
    """What files or a topic hold, and what a stream over them should say."""

    name: str
    shape: FileShape | TopicShape
    rows: SampledRows
    kinds: Sequence[ColumnKind]
    times: Sequence[TimeChoice]
    """The columns that can be the time, the chosen one first."""
    profile: TimeProfile | None
    keys: Sequence[KeyChoice]
    partitions: Mapping[str, TimeProfile | None]
    """By partition of a topic its own profile; None if it has no times."""

    @property
    def time(self) -> TimeChoice | None:
        """The chosen time; None if no column can be it."""
        return self.times[0] if self.times else None

    @property
    def null_words(self) -> list[str]:
        """The words that stand for null in some column."""
        return list(dict.fromkeys(word for kind in self.kinds for word in kind.null_words))

    def declared(self, kind: ColumnKind) -> pa.DataType:
        """The type that the stream gives a column: TIMESTAMP also for times that are written as the chosen one is."""
        alike = {each.column for each in self.times if self.time and each.format == self.time.format}
        return TIMESTAMP if kind.name in alike else kind.type


def proposal(path: str, options: Mapping[str, str]) -> Proposal:
    """What a file, a folder or a topic holds; `options` are for the topic."""
    if is_topic(path):
        return topic_proposal(topic_messages(path, options))
    if options:
        raise RequestError(
            "options are for topics of Kafka", hint="Leave out --option: what a file needs is found out."
        )
    shape = file_shape(path)
    return _proposal(stream_name(Path(path).name.split(".")[0]), shape, sampled_rows(shape))


def topic_proposal(messages: TopicMessages) -> Proposal:
    """What a topic holds, of which these are messages."""
    shape = topic_shape(messages)
    return _proposal(stream_name(messages.topic), shape, sampled_messages(messages, shape))


def _proposal(name: str, shape: FileShape | TopicShape, rows: SampledRows) -> Proposal:
    # Only csv has options for what its numbers and nulls look like.
    decimal = shape.format != "csv" or "delimiter" in shape.options
    words = NULL_WORDS if shape.format == "csv" else ()
    kinds = [
        column_kind(each, column, commas_are_decimal=decimal, null_words=words, settled=_is_settled(each, shape))
        for each, column in rows.columns.items()
    ]
    times = time_choices(rows.columns, kinds)
    if all(is_of_message(each.column) for each in times):
        times = nested_times(rows.columns, kinds) + times
    keys = key_choices(rows.columns, kinds, times[0] if times else None)
    parts = _parts(times[0], rows) if times else {}
    profile = time_profile(*parts.values()) if times else None
    own = {each: time_profile(part) if len(part) else None for each, part in parts.items()} if rows.parts else {}
    return Proposal(name, shape, rows, kinds, times, profile, keys, own)


def _is_settled(column: str, shape: FileShape | TopicShape) -> bool:
    """True if a column has its type, whatever its values look like."""
    return isinstance(shape, TopicShape) and (shape.format == "raw" or is_of_message(column))


def _parts(time: TimeChoice, rows: SampledRows) -> dict[str, Micros]:
    """The times by partition, those of files all together."""
    ends = np.cumsum(list(rows.parts.values())[:-1], dtype=np.int64)
    return dict(zip(rows.parts or ("",), np.split(time.times, np.searchsorted(time.places, ends)), strict=True))


def stream_name(text: str) -> str:
    """A name for a stream.

    >>> stream_name("2024 clicks"), stream_name("shop.orders")
    ('_2024_clicks', 'shop_orders')
    """
    name = re.sub(r"\W+", "_", text).strip("_").lower() or "rows"
    return f"_{name}" if name[0].isdigit() else name
