"""Results into a topic of Kafka, each once: the messages of an epoch and the note that it has been taken are one
transaction.

Rules:
- The note is the committed offset of a consumer group that is named after run and query: the number of the next epoch.
  An epoch that it has passed is not written again. One before the last is an error: the checkpoint is an old copy.
- A producer that is opened for the same run and query aborts what its predecessor left open, and fences it off.
- While the broker does not answer, an epoch is tried again, for as long as the options say; not by a producer that was
  fenced off.
- With at-least-once delivery there are no transactions and no notes: an epoch that is repeated is there twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

import pyarrow as pa

from millrace.connectors.kafka.kafka_client import (
    HOW_TO_REACH,
    Complaints,
    client,
    client_settings,
    is_passed_on,
    opened,
    reason_text,
    refusal,
    topics,
)
from millrace.connectors.kafka.message_options import MessageOptions, message_options
from millrace.connectors.kafka.outgoing_messages import MOST, messages_of
from millrace.connectors.retries import Retries
from millrace.errors import CheckpointError, MillraceError, RunError

_CALL = 15.0
"""Seconds that a call to the broker may take, beside what the client does in the background."""
_LOST = 20.0
"""Seconds after which a call that should have taken less is given up."""
_CHECK = 10.0
_FENCED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC")
_LASTING = (*_FENCED, *_NO_TOPIC, "MSG_SIZE_TOO_LARGE", "INVALID_CONFIG", "_INVALID_ARG")
"""Faults that do not pass by themselves; refusals of rights are among them by their names."""
_SETTINGS = {
    "linger.ms": 5,
    "reconnect.backoff.max.ms": 1000,
    "enable.idempotence": True,
    # As producers in Java do it: a key is in one partition, whichever program wrote it.
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 4 * MOST,
    "queue.buffering.max.kbytes": 2_097_151,
}


class KafkaWriter:
    """Writes the results of a query as messages; see `message_options` for the options."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        self.given = options
        self.options = message_options(options, schema, query)
        self.name = f"millrace-{options['run']}-{query}"
        self._open: _Producer | None = None
        self._complaints = Complaints()

    @staticmethod
    def check(options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        """Refuse wrong options, a broker that does not answer, and a topic that is not there."""
        checked = message_options(options, schema, query)
        complaints = Complaints()
        settings = client_settings(options, complaints)
        admin = opened(client().admin.AdminClient, settings, "the sink")
        try:
            found = topics(admin, complaints, _CHECK, checked.topic)[checked.topic].error
        except client().KafkaException as error:
            raise fault(error.args[0], options, checked.topic) from error
        if found is not None:
            raise fault(found, options, checked.topic)
        # The options of a producer may be wrong though those of other clients are right.
        opened(client().Producer, {**settings, **_SETTINGS}, "the sink")

    @staticmethod
    def reaches(option: str) -> bool:
        """True if an option says how brokers are reached."""
        return option in ("bootstrap_servers", "retry_seconds") or is_passed_on(option)

    def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        rows, retries = list(batches), Retries(self.options.retry_seconds)
        while True:
            try:
                if self._open is None:
                    self._open = self._producer()
                self._open.write(epoch, rows)
                self._complaints.clear()
                return
            except client().KafkaException as error:
                self.close()
                cause = self._complaints.cause(error.args[0])
                if _is_lasting(cause) or retries.are_over:
                    raise fault(cause, self.given, self.options.topic) from error
            except BaseException:
                self.close()
                raise
            retries.pause()

    def _producer(self) -> _Producer:
        settings = {**_SETTINGS, **client_settings(self.given, self._complaints)}
        if self.options.exactly_once:
            return _Transactions(settings, self.options, self.name)
        return _PlainProducer(settings, self.options)

    def close(self) -> None:
        producer, self._open = self._open, None
        with suppress(Exception):
            if producer is not None:
                producer.close()


class _Producer(ABC):
    """A producer that writes each epoch that it is given."""

    def __init__(self, settings: Mapping[str, Any], options: MessageOptions) -> None:
        self.options = options
        self.producer = opened(client().Producer, settings, "the sink")

    @abstractmethod
    def write(self, epoch: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Write an epoch; returns when the broker has all of it."""

    def send(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Hand the rows of an epoch to the client."""
        for batch in batches:
            for messages in messages_of(batch, self.options):
                while len(self.producer) > 2 * MOST:
                    self.producer.poll(0.05)
                self._produce(messages)

    def _produce(self, messages: list[dict[str, Any]]) -> None:
        # The client takes neither headers nor times of messages that are given together.
        if self.options.headers or self.options.timestamp is not None:
            for message in messages:
                self.producer.produce(self.options.topic, **message)
        elif self.producer.produce_batch(self.options.topic, messages) < len(messages):
            raise client().KafkaException(next(each["_error"] for each in messages if "_error" in each))

    def close(self) -> None:
        """Drop what is under way. The client goes when nothing refers to it: its own way to close waits for ever."""
        self.producer.purge()


class _PlainProducer(_Producer):
    """A producer without transactions."""

    def __init__(self, settings: Mapping[str, Any], options: MessageOptions) -> None:
        self._failed: Any = None
        super().__init__({**settings, "delivery.report.only.error": True, "on_delivery": self._on_failure}, options)

    def _on_failure(self, error: Any, _: object) -> None:
        self._failed = self._failed or error

    def write(self, epoch: int, batches: Sequence[pa.RecordBatch]) -> None:
        self.send(batches)
        # The client gives up on a message by itself.
        while len(self.producer) and self._failed is None:
            self.producer.flush(0.5)
        if self._failed is not None:
            raise client().KafkaException(self._failed)


class _Transactions(_Producer):
    """A producer that writes an epoch and the note of it in one transaction, unless the note is there."""

    def __init__(self, settings: Mapping[str, Any], options: MessageOptions, name: str) -> None:
        super().__init__({**settings, "transactional.id": name}, options)
        own = {"group.id": name, "enable.auto.commit": False}
        kept = {key: value for key, value in settings.items() if key not in _SETTINGS}
        self.notes = opened(client().Consumer, {**kept, **own}, "the sink")
        # What a predecessor left open ends here: the note is final when this returns.
        self.producer.init_transactions(_CALL)
        (self.taken,) = self.notes.committed([client().TopicPartition(options.topic, 0)], _CALL)
        if self.taken.error is not None:
            raise client().KafkaException(self.taken.error)

    def write(self, epoch: int, batches: Sequence[pa.RecordBatch]) -> None:
        if self.taken.offset > epoch + 1:
            raise CheckpointError(
                f"the topic has taken epoch {self.taken.offset - 1} of this checkpoint already",
                hint="The checkpoint is an old copy, or another run goes on from it: use the newest one.",
            )
        if self.taken.offset == epoch + 1:
            return
        note = client().TopicPartition(self.options.topic, 0, epoch + 1)
        self.producer.begin_transaction()
        self.send(batches)
        self._send_note(note)
        self.commit()
        self.taken = note

    def _send_note(self, note: Any) -> None:
        """Put the note into the transaction. A call that the client has lost is left to itself, and so is its producer:
        when a broker goes and comes back while the client looks for the group, the call never returns."""
        failed: list[Exception] = []

        def send() -> None:
            try:
                self.producer.send_offsets_to_transaction([note], self.notes.consumer_group_metadata(), _CALL)
            except Exception as error:
                failed.append(error)

        sending = Thread(target=send, name="millrace-kafka-note", daemon=True)
        sending.start()
        sending.join(_LOST)
        if sending.is_alive():
            raise client().KafkaException(client().KafkaError(client().KafkaError._TIMED_OUT, "the note of an epoch"))
        if failed:
            raise failed[0]

    def commit(self) -> None:
        """Let the messages and the note count, when the broker has all of them."""
        self.producer.commit_transaction(_CALL)

    def close(self) -> None:
        with suppress(Exception):
            self.notes.close()
        super().close()
        with suppress(Exception):
            self.producer.abort_transaction(1.0)


def _is_lasting(error: Any) -> bool:
    return error.name() in _LASTING or "AUTH" in error.name() or error.name() == "_SSL"


def fault(error: Any, options: Mapping[str, str], topic: str) -> MillraceError:
    """The error of the client in plain words."""
    name, reason, servers = error.name(), reason_text(error), options["bootstrap_servers"]
    if (refused := refusal(error, "the sink", servers)) is not None:
        return refused
    if name in _FENCED:
        return RunError(
            f'another process has begun to write results of this query to the topic "{topic}", or a transaction took '
            f"longer than the broker allows: {reason}",
            hint="Let one run use a checkpoint. For long epochs add transaction.timeout.ms '300000' to the options of "
            "the sink. Start again on the same --checkpoint: nothing is lost.",
        )
    if name in _NO_TOPIC:
        return RunError(
            f'the Kafka broker at "{servers}" has no topic "{topic}"', hint="Create it, or name another with topic."
        )
    if "AUTH" in name:
        return RunError(
            f'the Kafka broker at "{servers}" refuses the sink, topic "{topic}": {reason}',
            hint="Look at the security_, sasl_ and ssl_ options. Exactly once needs the rights to write and "
            'describe the topic, the transactional id and the group, which both begin with "millrace-".',
        )
    if name == "MSG_SIZE_TOO_LARGE":
        return RunError(
            f'a message is too large for the topic "{topic}": {reason}',
            hint="Select less, or add message.max.bytes to the options, and to the settings of the topic.",
        )
    return RunError(
        f'the Kafka broker at "{servers}" does not answer, topic "{topic}": {reason} ({name})',
        hint=f"{HOW_TO_REACH} Then start again on the same --checkpoint: nothing is lost.",
    )
