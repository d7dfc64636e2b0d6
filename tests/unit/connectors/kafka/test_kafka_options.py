from __future__ import annotations

import pytest

from millrace.connectors.kafka.kafka_client import Complaints, client_settings
from millrace.connectors.kafka.kafka_options import kafka_options
from millrace.errors import RequestError

_BROKER = {"bootstrap_servers": "here:9092"}


def test_topics_are_named_listed_or_matched() -> None:
    listed = kafka_options({**_BROKER, "topic": "a, b"}, "s")
    matched = kafka_options({**_BROKER, "topic_pattern": "click.*"}, "s")
    assert [listed.matches(each) for each in ("a", "b", "ab")] == [True, True, False]
    assert [matched.matches(each) for each in ("clicks", "my-clicks")] == [True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "a"}, "does not name a broker"),
        (_BROKER, "does not name a topic"),
        ({**_BROKER, "topic": "a", "topic_pattern": "b"}, "names topics and a pattern"),
        ({**_BROKER, "topic_pattern": "("}, 'option "topic_pattern" does not take'),
        ({**_BROKER, "topic": "a", "start": "soon"}, 'option "start" does not take "soon"'),
        ({**_BROKER, "topic": "a", "isolation": "none"}, 'option "isolation" does not take "none"'),
        ({**_BROKER, "topic": "a", "tpoic": "b"}, 'has no option "tpoic"'),
        ({**_BROKER, "topic": "a", "delimiter": ";"}, 'has no option "delimiter"'),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        kafka_options(options, 'stream "s"')


@pytest.mark.parametrize("option", ["kafka.bootstrap.servers", "subscribe", "startingoffsets"])
def test_options_of_sparks_own_source_say_where_it_is(option: str) -> None:
    with pytest.raises(RequestError) as caught:
        kafka_options({option: "x"}, 'stream "s"')
    assert "KafkaSourceProvider" in caught.value.hint


def test_options_of_the_client_are_passed_on() -> None:
    given = {**_BROKER, "topic": "a", "sasl_username": "me", "ssl_ca_location": "/ca", "fetch.min.bytes": "7"}
    kafka_options(given, "s")
    settings = client_settings(given, Complaints())
    assert settings["bootstrap.servers"] == "here:9092"
    assert settings.items() >= {"sasl.username": "me", "ssl.ca.location": "/ca", "fetch.min.bytes": "7"}.items()
    assert "topic" not in settings
