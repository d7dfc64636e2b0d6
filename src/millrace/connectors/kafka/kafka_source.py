"""Topics of Kafka as a source: a partition of a topic is a partition of the stream, an offset is a position.

Rules:
- Rows are of committed transactions alone, unless the stream reads uncommitted ones. A partition with an open
  transaction is busy: what it holds back may come with old times.
- The client fetches ahead. What it has is given when it is asked for; where it stands is checked at every call, and
  it is sent to other positions only if it is not there.
- A message that cannot be decoded ends a piece. It is an error when it is the next one to be read, or it is counted.
- Partitions and what they still hold are looked up at most once a second, their ends at every call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.files.conversion import as_text
from millrace.connectors.files.file_blocks import Fault
from millrace.connectors.formats.decoded import Decoded, Positions
from millrace.connectors.formats.decoders import open_decoder, skips_malformed
from millrace.connectors.kafka.kafka_client import Complaints, client, client_settings, failure, opened, topics
from millrace.connectors.kafka.kafka_options import kafka_options
from millrace.connectors.kafka.message_columns import check_columns, column_of, is_of_message, readable
from millrace.connectors.source import PartitionSpan, Source, SourcePiece, Unreachable, UnreadPlace
from millrace.errors import MillraceError

_TIMEOUT = 10.0
"""Seconds that a call may take."""
_PATIENCE = 60.0
"""Seconds without a message after which a task that reads messages fails."""
_REFRESH = 1.0
"""Seconds for which the list of partitions is good."""
_SETTLES = 2.0
"""Seconds that a new partition may take until it can be asked for."""
_FETCHED = 100_000
"""Messages that a task decodes at once."""
_Partition = tuple[str, int]


class KafkaSource(Source):
    """Reads the messages of topics; a partition is named `topic/number`."""

    def __init__(
        self, options: Mapping[str, str], schema: pa.Schema, stream: str, declared: pa.Schema | None = None
    ) -> None:
        super().__init__(options, schema, stream, declared)
        self._owner = f'stream "{stream}"'
        self._chosen = kafka_options(options, self._owner)
        check_columns(self.declared, self._owner)
        self._values = _without_message_columns(schema)
        self._decoder = (
            open_decoder(self._values, _without_message_columns(self.declared), options, self._owner)
            if len(self._values)
            else None
        )
        self._skips = skips_malformed(options)
        self._kafka = client()
        self._complaints = Complaints()
        self._names: dict[_Partition, str] = {}
        self._firsts: dict[str, int] = {}
        self._listed = -_REFRESH
        self._standing: dict[str, int] = {}
        """Where the consumer goes on in each partition that it fetches."""

    # Spans

    def spans(self) -> dict[str, PartitionSpan]:
        if time.monotonic() - self._listed >= _REFRESH:
            self._list_partitions()
        latest = self._kafka.admin.OffsetSpec.latest()
        committed = self._chosen.isolation == "read_committed"
        asked = [self._asked_offsets(latest, committed=each) for each in ((True, False) if committed else (False,))]
        ends, *written = (self._answered(each) for each in asked)
        return {
            name: PartitionSpan(first, max(ends[name], first), busy=any(each[name] > ends[name] for each in written))
            for name, first in self._firsts.items()
        }

    def starts(self, spans: Mapping[str, PartitionSpan]) -> dict[str, int]:
        start = self._chosen.start
        if start.time is not None:
            asked = self._asked_offsets(self._kafka.admin.OffsetSpec.for_timestamp(start.time), committed=False)
            found = self._answered(asked)
            return {name: found[name] if found[name] >= 0 else span.end for name, span in spans.items()}
        begins = {name: span.end if start.end == "latest" else span.first for name, span in spans.items()}
        for topic, number, offset in start.offsets:
            named = [(each, at) for each, at in self._names.items() if each[1] == number and topic in (None, each[0])]
            begins.update({name: min(max(offset, spans[name].first), spans[name].end) for _, name in named})
        return begins

    def _list_partitions(self) -> None:
        # By name where there are names: a cluster may have thousands of other topics.
        listed = [self._topics(topic) for topic in self._chosen.topics] or [self._topics()]
        found = {
            topic: each for each_list in listed for topic, each in each_list.items() if self._chosen.matches(topic)
        }
        for topic, each in found.items():
            if each.error is not None:
                raise self._failure(each.error, f'topic "{topic}"')
        self._names = {
            (topic, number): f"{topic}/{number}" for topic, each in found.items() for number in sorted(each.partitions)
        }
        self._firsts = self._first_offsets()
        self._listed = time.monotonic()

    def _topics(self, *topic: str) -> dict[str, Any]:
        # A consumer that has partitions would give their messages where it is asked for complaints.
        served = self._admin if self._standing else self._consumer
        found: dict[str, Any] = self._call(
            lambda: topics(self._consumer, self._complaints, _TIMEOUT, *topic, served=served)
        )
        return found

    def _first_offsets(self) -> dict[str, int]:
        earliest, until = self._kafka.admin.OffsetSpec.earliest(), time.monotonic() + _SETTLES
        while True:
            try:
                return self._answered(self._asked_offsets(earliest, committed=False))
            except Unreachable:
                # A partition is listed a moment before its broker knows it.
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def _asked_offsets(self, spec: Any, *, committed: bool) -> dict[Any, Any]:
        """The offsets of all partitions, as promises."""
        level = self._kafka.IsolationLevel
        asked = {self._kafka.TopicPartition(*each): spec for each in self._names}
        isolation = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
        if not asked:
            return {}
        found: dict[Any, Any] = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=_TIMEOUT)
        return found

    def _answered(self, promises: Mapping[Any, Any]) -> dict[str, int]:
        return {
            self._names[at.topic, at.partition]: self._call(lambda: self._offset(promised), at)  # noqa: B023
            for at, promised in promises.items()
        }

    def _offset(self, promised: Any) -> int:
        offset = int(promised.result(_TIMEOUT).offset)
        if offset == self._kafka.OFFSET_INVALID:
            # So says the client, without an error, where the broker has not answered in time.
            raise TimeoutError
        return offset

    # Rows

    def read(self, partition: str, start: int, stop: int) -> Iterator[SourcePiece]:
        position, span, heard = start, {partition: PartitionSpan(start, stop)}, time.monotonic()
        while position < stop:
            for piece in self.poll({partition: position}, span, _FETCHED, bounded=True):
                position, heard = piece.position, time.monotonic()
                yield piece
            if time.monotonic() - heard > _PATIENCE:
                late = self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT)
                raise self._failure(late, f'partition "{partition}"')

    def poll(
        self, positions: Mapping[str, int], spans: Mapping[str, PartitionSpan], most: int, *, bounded: bool = False
    ) -> Iterable[SourcePiece]:
        wanted = {name: at for name, at in positions.items() if not bounded or at < spans[name].end}
        if wanted != self._standing:
            self._stand_at(wanted)
        if not wanted:
            return
        # A bounded run waits for what it knows to be there.
        left = sum(spans[name].end - at for name, at in wanted.items()) if bounded else most
        messages = self._call(lambda: self._consumer.consume(min(most, left), 0.1 if bounded else 0.0))
        found, ends = self._by_partition(messages, wanted)
        for name in dict.fromkeys([*found, *ends]):
            piece = self._piece(name, found.get(name, []), ends.get(name), spans[name].end if bounded else None)
            if piece.position > positions[name]:
                # A piece that ends early is followed by a message that the consumer has given already.
                self._standing[name] = max(self._standing[name], piece.position)
                yield piece

    def _by_partition(
        self, messages: Sequence[Any], wanted: Mapping[str, int]
    ) -> tuple[dict[str, list[Any]], dict[str, int]]:
        """Messages by partition, none from before its position, and where partitions ended that have no more now."""
        found: dict[str, list[Any]] = {}
        ends: dict[str, int] = {}
        # The client gives the messages of a partition together, so that few calls treat many messages.
        for name, together in groupby(messages, _name):
            if name not in wanted:
                continue
            own = list(together)
            if any(each.error() for each in own):
                end, own = self._ended(name, own)
                ends[name] = end
            if own and own[0].offset() < wanted[name]:
                own = [each for each in own if each.offset() >= wanted[name]]
            if own:
                found.setdefault(name, []).extend(own)
        for name, own in found.items():
            self._standing[name] = own[-1].offset() + 1
        return found, ends

    def _ended(self, name: str, messages: Sequence[Any]) -> tuple[int, list[Any]]:
        """Where a partition ended, some of whose messages are errors, and its messages that are none."""
        for message in messages:
            if message.error() is not None and message.error().code() != self._kafka.KafkaError._PARTITION_EOF:
                self._consumer.unassign()
                self._standing = {}
                raise self._failure(message.error(), f'partition "{name}"')
        end = max(message.offset() for message in messages if message.error() is not None)
        return end, [message for message in messages if message.error() is None]

    def _piece(self, name: str, messages: list[Any], end: int | None, stop: int | None) -> SourcePiece:
        """The rows of messages of one partition, without those from `stop` on; `end` is where it ended."""
        position = max(end or 0, messages[-1].offset() + 1 if messages else 0)
        if stop is not None and position > stop:
            messages, position = [each for each in messages if each.offset() < stop], stop
        decoded = None if self._decoder is None else self._decoder.decode([each.value() for each in messages])
        good, faults = self._judged(messages, decoded)
        unread: tuple[UnreadPlace, ...] = ()
        if len(faults) and not self._skips:
            # The rows before it are read first: it is an error when it is the next one.
            torn = int(faults[0])
            position, good = messages[torn].offset(), good[good < torn]
            if torn == 0:
                fault = replace(self._fault(0, messages, decoded), place=f"offset {position}")
                raise fault.error(f'partition "{name}"')
        elif len(faults):
            unread = tuple(self._unread(int(number), messages, decoded) for number in faults)
        return SourcePiece(name, self._rows(messages, decoded, good), position, unread)

    def _judged(self, messages: list[Any], decoded: Decoded | None) -> tuple[Positions, Positions]:
        """The numbers of the messages that are rows, and of those that are not."""
        good = readable(self.schema, messages)
        if decoded is not None:
            fits = np.zeros(len(messages), np.bool_)
            fits[decoded.kept] = True
            good &= fits
            return np.flatnonzero(good), np.setdiff1d(np.flatnonzero(~good), decoded.no_rows)
        return np.flatnonzero(good), np.flatnonzero(~good)

    def _fault(self, number: int, messages: list[Any], decoded: Decoded | None) -> Fault:
        if decoded is None or number in decoded.kept:
            return Fault("", "is not text in UTF-8", as_text(messages[number].key()), "kafka_key")
        return decoded.explain(number)

    def _unread(self, number: int, messages: list[Any], decoded: Decoded | None) -> UnreadPlace:
        message = messages[number]
        return UnreadPlace(message.offset(), as_text(message.value()), self._fault(number, messages, decoded).told)

    def _rows(self, messages: list[Any], decoded: Decoded | None, good: Positions) -> pa.RecordBatch:
        """The rows of the messages of some numbers."""
        kept = messages if len(good) == len(messages) else [messages[number] for number in good.tolist()]
        columns = []
        for field in self.schema:
            if is_of_message(field.name):
                columns.append(column_of(field, kept))
            else:
                assert decoded is not None
                column = decoded.rows.column(field.name)
                whole = len(column) == len(good)
                columns.append(column if whole else column.take(pa.array(np.searchsorted(decoded.kept, good))))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _stand_at(self, wanted: Mapping[str, int]) -> None:
        """Let the consumer fetch these partitions from these positions."""
        stays = {name: at for name, at in self._standing.items() if wanted.get(name) == at}
        gone = [name for name in self._standing if name not in stays]
        added = [name for name in wanted if name not in stays]
        if gone:
            self._call(lambda: self._consumer.incremental_unassign([self._place(name, 0) for name in gone]))
        if added:
            self._call(lambda: self._consumer.incremental_assign([self._place(name, wanted[name]) for name in added]))
        self._standing = dict(wanted)

    def _place(self, name: str, offset: int) -> Any:
        topic, _, number = name.rpartition("/")
        return self._kafka.TopicPartition(topic, int(number), offset)

    # Clients

    @cached_property
    def _consumer(self) -> Any:
        own = {
            "group.id": "millrace",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": self._chosen.isolation,
            "allow.auto.create.topics": False,
            "topic.metadata.refresh.interval.ms": 5000,
            # A broker answers one request at a time: a wait at the end of one partition delays the others.
            "fetch.wait.max.ms": 20,
            # When it has fetched enough for now, the client looks again after so long: by default a second.
            "fetch.queue.backoff.ms": 10,
        }
        return opened(self._kafka.Consumer, {**own, **client_settings(self.options, self._complaints)}, self._owner)

    @cached_property
    def _admin(self) -> Any:
        # It asks for what it knows of a topic again, so that it knows new partitions.
        own = {"metadata.max.age.ms": int(_REFRESH * 1000)}
        return opened(
            self._kafka.admin.AdminClient, {**own, **client_settings(self.options, self._complaints)}, self._owner
        )

    def _call(self, call: Callable[[], Any], at: Any = None) -> Any:
        """What a call of the client gives; its error in plain words."""
        try:
            return call()
        except (self._kafka.KafkaException, TimeoutError) as error:
            timed_out = self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT)
            cause = error.args[0] if isinstance(error, self._kafka.KafkaException) else timed_out
            what = "" if at is None else f'partition "{at.topic}/{at.partition}"'
            raise self._failure(cause, what, listed=at is not None) from None

    def _failure(self, error: Any, what: str, *, listed: bool = False) -> MillraceError:
        if "_admin" in self.__dict__:
            self._admin.poll(0)
        servers = self.options["bootstrap_servers"]
        return failure(self._complaints.cause(error), self._owner, servers, what, listed=listed)

    def close(self) -> None:
        for name in ("_consumer", "_admin"):
            opened_one = self.__dict__.pop(name, None)
            if name == "_consumer" and opened_one is not None:
                opened_one.close()


def _without_message_columns(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if not is_of_message(field.name)])


def _name(message: Any) -> str:
    """The name of a message's partition."""
    return f"{message.topic()}/{message.partition()}"
