"""What every client of Kafka needs: its package, its settings, and errors in plain words.

Options that are the client's own are passed on: those with a dot in their name as they are, those that begin with
`security_`, `sasl_`, `ssl_` or `client_` with dots for underscores.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from millrace.connectors.source import Unreachable
from millrace.errors import MillraceError, RequestError, RunError

_PASSED_ON = re.compile(r"(security|sasl|ssl|client)_")
_NO_ANSWER = ("_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT")
_PASSING = (
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "NOT_LEADER_OR_FOLLOWER",
    "BROKER_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NETWORK_EXCEPTION",
    "KAFKA_STORAGE_ERROR",
    "_NOENT",
)
_WRONG_SECRET = (
    "Correct sasl_mechanism, sasl_username and sasl_password, or security_protocol if the broker wants no password."
)
_REFUSED = {
    "_AUTHENTICATION": _WRONG_SECRET,
    "SASL_AUTHENTICATION_FAILED": _WRONG_SECRET,
    "UNSUPPORTED_SASL_MECHANISM": _WRONG_SECRET,
    "_SSL": "Name the file with the certificate that signed the broker's in ssl_ca_location. If the broker wants a "
    "certificate of the client too, add ssl_certificate_location and ssl_key_location.",
}
"""What to do about each refusal of a connection."""
_WHEN = re.compile(r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)$")
_NOT_ALLOWED = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED")
_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID")
HOW_TO_REACH = "Start it, or correct bootstrap_servers. A listener with TLS or passwords needs security_protocol too."
_GONE = ("OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET")


def client() -> Any:
    """The package of the client; refuses where it is not installed."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError:
        raise RequestError(
            'the connector "kafka" needs the package confluent-kafka, which is not installed',
            hint="Install it with pip install 'millrace[kafka]'.",
        ) from None
    return confluent_kafka


class Complaints:
    """Why clients have no connection: a call says only that it took too long, and the reason is given to a callback."""

    def __init__(self) -> None:
        self._last: Any = None

    def __call__(self, error: Any) -> None:
        if error.name() != "_ALL_BROKERS_DOWN":
            self._last = error

    def clear(self) -> None:
        """Forget what was said: the broker answers."""
        self._last = None

    def cause(self, error: Any) -> Any:
        """The reason of an error, which is another one if a broker did not answer."""
        return error if self._last is None or error.name() not in _NO_ANSWER else self._last


def topics(
    asking: Any, complaints: Complaints, seconds: float, topic: str | None = None, *, served: Any = None
) -> dict[str, Any]:
    """All topics, or one. `served` is the client whose complaints are looked at, by default the one that asks.

    The first tries are short: a refusal is then known soon.
    """
    until, patience = time.monotonic() + seconds, 0.5
    while True:
        left = until - time.monotonic()
        try:
            found: dict[str, Any] = asking.list_topics(topic, timeout=max(min(patience, left), 0.1)).topics
            complaints.clear()
            return found
        except client().KafkaException as error:
            (served or asking).poll(0)
            cause = complaints.cause(error.args[0])
            if left <= patience or cause.name() in _REFUSED:
                raise client().KafkaException(cause) from error
            patience *= 2


def is_passed_on(option: str) -> bool:
    """True if an option is the client's own.

    >>> is_passed_on("sasl_username"), is_passed_on("fetch.min.bytes"), is_passed_on("topic")
    (True, True, False)
    """
    return "." in option or _PASSED_ON.match(option) is not None


def client_settings(options: Mapping[str, str], complaints: Complaints) -> dict[str, Any]:
    """The settings of a client: its servers, and the options that are its own; it prints nothing."""
    own = {name: value for name, value in options.items() if is_passed_on(name)}
    given = {name if "." in name else name.replace("_", "."): value for name, value in own.items()}
    return {"bootstrap.servers": options["bootstrap_servers"], "log_level": 0, "error_cb": complaints, **given}


def opened(make: Any, settings: Mapping[str, Any], owner: str) -> Any:
    """A client with these settings; refuses those that it does not know."""
    try:
        return make(dict(settings))
    except (client().KafkaException, ValueError, TypeError) as error:
        reason = error.args[0].str() if error.args and hasattr(error.args[0], "str") else str(error)
        raise RequestError(
            f"the Kafka client does not take the options of {owner}: {reason}",
            hint="Options with a dot, and those of security_, sasl_, ssl_ and client_, are librdkafka's settings. "
            "Files that they name must be there.",
        ) from None


def failure(error: Any, owner: str, servers: str, what: str = "", *, listed: bool = False) -> MillraceError:
    """The error of the client in plain words; `what` is the topic or partition that it is about.

    One that is `listed` is there: a broker that does not know it has not caught up yet.
    """
    name, reason = error.name(), reason_text(error)
    if (refused := refusal(error, owner, servers)) is not None:
        return refused
    if name in _NO_ANSWER or name in _PASSING or (listed and name in _NO_TOPIC):
        return Unreachable(
            f'the Kafka broker at "{servers}" does not answer for {owner}: {reason}',
            hint=f"{HOW_TO_REACH} A run on the same --checkpoint goes on where this one was.",
        )
    if name in _NOT_ALLOWED:
        return RunError(
            f"{owner} is not allowed to use {what or 'its topic'}: {reason}",
            hint="Its user needs the rights to read and to describe the topic: ask the administrator of the broker.",
        )
    if name in _NO_TOPIC:
        return RunError(
            f"{owner} reads {what or 'a topic'}, which the Kafka broker does not have",
            hint="Create the topic, or correct the option topic. One that was deleted needs a new checkpoint.",
        )
    if name in _GONE:
        return RunError(
            f"messages of {owner} were deleted before they were read: {what}, {reason}",
            hint="Keep messages longer than a run may be down. To go on without them, start on a new checkpoint.",
        )
    return RunError(f"Kafka failed for {owner}: {reason} ({name})", hint="Look at the log of the broker.")


def refusal(error: Any, owner: str, servers: str) -> RunError | None:
    """The error of a connection that the broker, or the client for its safety, refuses; None if it is another one."""
    hint = _REFUSED.get(error.name())
    fact = f'the connection of {owner} to the Kafka broker at "{servers}" is refused: {reason_text(error)}'
    return None if hint is None else RunError(fact, hint=hint)


def reason_text(error: Any) -> str:
    """What the client says, without how long that took."""
    return _WHEN.sub("", error.str())
