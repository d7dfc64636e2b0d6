"""The options of a stream of Kafka, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from millrace.connectors.formats.decoders import OPTIONS, message_format
from millrace.connectors.kafka.kafka_client import is_passed_on
from millrace.errors import RequestError, did_you_mean, listed

_OWN = ("bootstrap_servers", "topic", "topic_pattern", "format", "start", "isolation")
_ISOLATION = ("read_committed", "read_uncommitted")
_OFFSET = re.compile(r"(?:(?P<topic>[\w.-]+)/)?(?P<partition>\d+):(?P<offset>\d+)")
_SPARKS = (
    "Spark's own Kafka source takes such options: FROM 'org.apache.spark.sql.kafka010.KafkaSourceProvider'. "
    "Millrace's has "
)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a run without a checkpoint begins: at an end of the topics, at a time, or at offsets."""

    end: str = "earliest"
    time: int | None = None
    """Milliseconds since 1970."""
    offsets: tuple[tuple[str | None, int, int], ...] = ()
    """Topic (None: of all), partition and offset; other partitions begin at their first message."""


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """What a stream reads: the topics by name, or by a pattern, and from where."""

    topics: tuple[str, ...]
    pattern: str | None
    start: Start
    isolation: str

    def matches(self, topic: str) -> bool:
        """True if the stream reads a topic."""
        return topic in self.topics if self.pattern is None else re.fullmatch(self.pattern, topic) is not None


def kafka_options(options: Mapping[str, str], owner: str) -> KafkaOptions:
    """The checked options of a stream; refuses what is missing, unknown, or not a value of its option."""
    known = (*_OWN, *OPTIONS[message_format(options)])
    for name in options:
        if name.startswith(("kafka.", "subscribe")) or name in ("startingoffsets", "assign"):
            raise RequestError(f'the connector "kafka" has no option "{name}"', hint=f"{_SPARKS}{listed(_OWN)}.")
        if name not in known and not is_passed_on(name):
            hint = f"{did_you_mean(name, known)}The options are {listed(known)}, and those of the client."
            raise RequestError(f'the connector "kafka" has no option "{name}"', hint=hint)
    if not options.get("bootstrap_servers"):
        raise RequestError(f"{owner} does not name a broker", hint="Add bootstrap_servers 'host:9092' to its options.")
    topics = tuple(each.strip() for each in options.get("topic", "").split(",") if each.strip())
    pattern = options.get("topic_pattern")
    if bool(topics) == (pattern is not None):
        fact = "names topics and a pattern for topics" if topics else "does not name a topic"
        raise RequestError(f"{owner} {fact}", hint="Add topic 'clicks', topic 'a, b', or topic_pattern 'click.*'.")
    return KafkaOptions(topics, _pattern(pattern), _start(options.get("start", "earliest")), _isolation(options))


def _pattern(pattern: str | None) -> str | None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise RequestError(
            f'option "topic_pattern" does not take "{pattern}": {error}', hint="It takes a regular expression."
        ) from None
    return pattern


def _isolation(options: Mapping[str, str]) -> str:
    isolation = options.get("isolation", _ISOLATION[0]).lower()
    if isolation not in _ISOLATION:
        raise RequestError(f'option "isolation" does not take "{isolation}"', hint=f"It takes {listed(_ISOLATION)}.")
    return isolation


def _start(text: str) -> Start:
    """Where to begin.

    >>> _start("latest").end, _start("1970-01-01T00:00:02Z").time, _start("0:12, clicks/1:40").offsets
    ('latest', 2000, ((None, 0, 12), ('clicks', 1, 40)))
    """
    if text.lower() in ("earliest", "latest"):
        return Start(text.lower())
    places = [_OFFSET.fullmatch(each.strip()) for each in text.split(",")]
    if all(places):
        found = [(each["topic"], int(each["partition"]), int(each["offset"])) for each in places if each is not None]
        return Start(offsets=tuple(found))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(
            f'option "start" does not take "{text}"',
            hint="It takes earliest, latest, a time such as 2026-01-31T12:00:00Z, or offsets such as 0:12, 1:40.",
        ) from None
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return Start(time=int(zoned.timestamp() * 1000))
