"""What every client of Kafka needs: its package, its settings, and errors in plain words.

Options that are the client's own are passed on: those with a dot in their name as they are, those that begin with
`security_`, `sasl_`, `ssl_` or `client_` with dots for underscores.
"""

from __future__ import annotations

import re
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
_REFUSED = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL", "UNSUPPORTED_SASL_MECHANISM")
_NOT_ALLOWED = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED")
_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID")
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


def is_passed_on(option: str) -> bool:
    """True if an option is the client's own.

    >>> is_passed_on("sasl_username"), is_passed_on("fetch.min.bytes"), is_passed_on("topic")
    (True, True, False)
    """
    return "." in option or _PASSED_ON.match(option) is not None


def client_settings(options: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a client: its servers, and the options that are its own; it prints nothing."""
    own = {name: value for name, value in options.items() if is_passed_on(name)}
    given = {name if "." in name else name.replace("_", "."): value for name, value in own.items()}
    return {"bootstrap.servers": options["bootstrap_servers"], "log_level": 0, "error_cb": _ignore, **given}


def opened(make: Any, settings: Mapping[str, Any], owner: str) -> Any:
    """A client with these settings; refuses those that it does not know."""
    try:
        return make(dict(settings))
    except (client().KafkaException, ValueError, TypeError) as error:
        reason = error.args[0].str() if error.args and hasattr(error.args[0], "str") else str(error)
        raise RequestError(
            f"the Kafka client does not take the options of {owner}: {reason}",
            hint="Options with a dot, and those of security_, sasl_, ssl_ and client_, are librdkafka's settings.",
        ) from None


def failure(error: Any, owner: str, servers: str, what: str = "", *, listed: bool = False) -> MillraceError:
    """The error of the client in plain words; `what` is the topic or partition that it is about.

    One that is `listed` is there: a broker that does not know it has not caught up yet.
    """
    name, reason = error.name(), error.str()
    if name in _NO_ANSWER or name in _PASSING or (listed and name in _NO_TOPIC):
        return Unreachable(
            f'the Kafka broker at "{servers}" does not answer for {owner}: {reason}',
            hint="Start it, or correct bootstrap_servers. A run on the same --checkpoint goes on where this one was.",
        )
    if name in _REFUSED:
        return RunError(
            f'the Kafka broker at "{servers}" refuses the connection of {owner}: {reason}',
            hint="Look at security_protocol, sasl_mechanism, sasl_username, sasl_password and the ssl_ options.",
        )
    if name in _NOT_ALLOWED:
        return RunError(
            f"{owner} is not allowed to use {what or 'its topic'}: {reason}",
            hint="Let the administrator of the broker allow its user to read and describe the topic.",
        )
    if name in _NO_TOPIC:
        return RunError(
            f"{owner} reads {what or 'a topic'}, which the Kafka broker does not have",
            hint="Create the topic, or correct the option topic. One that was deleted needs a new checkpoint.",
        )
    if name in _GONE:
        return RunError(
            f"messages of {owner} are gone before they were read: {what}, {reason}",
            hint="Keep messages longer than a run may be down. To go on without them, start on a new checkpoint.",
        )
    return RunError(f"Kafka failed for {owner}: {reason} ({name})", hint="Look at the log of the broker.")


def _ignore(error: object) -> None:
    """What concerns a call is raised by the call; the client tries the rest again by itself."""
