"""Topics as streams, on a real broker: what is read, from where, and what a user is told when it cannot be."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from millrace.errors import MalformedRow, MillraceError, RequestError, RunError
from tests.e2e.commands import eventually, millrace
from tests.e2e.kafka_streams import column, in_order, message, rows, sent, stream_text
from tests.kafka_broker import PASSWORD, USER, Broker, running

pytestmark = pytest.mark.slow


def test_columns_of_a_message_are_columns_of_the_stream(kafka: Broker) -> None:
    stamp = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1000)
    extra = {"key": "k", "timestamp": stamp, "headers": {"trace": b"1", "empty": None}}
    topic = sent(kafka, "columns", {**message(1, 0, n=7), **extra}, message(1, 1, n=8))
    own = "kafka_key STRING, kafka_topic STRING, kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP"
    text = stream_text(kafka, topic, columns=f"n INT, {own}, kafka_headers MAP<STRING, STRING>")
    first, second = rows(text).to_pylist()
    assert [first[name] for name in ("n", "kafka_key", "kafka_topic")] == [7, "k", "columns"]
    assert (first["kafka_partition"], first["kafka_offset"]) == (1, 0)
    assert first["kafka_timestamp"] == datetime(2026, 5, 1, tzinfo=UTC)
    assert dict(first["kafka_headers"]) == {"trace": "1", "empty": None}
    assert (second["kafka_offset"], second["kafka_key"], second["kafka_headers"]) == (1, None, [])


def test_topics_are_read_by_list_and_by_pattern(kafka: Broker) -> None:
    for number in range(3):
        sent(kafka, f"several-{number}", message(0, number, n=number))
    listed = stream_text(kafka, "several-0, several-2")
    matched = stream_text(kafka, "", options={"topic_pattern": "several-[12]"})
    assert sorted(column(rows(listed))) == [0, 2]
    assert sorted(column(rows(matched))) == [1, 2]


def test_new_looks_at_a_topic_and_what_it_writes_runs(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millrace.survey.topic_messages.MOST_MESSAGES", 120)
    late = (message(0, second - 7 * (second % 2), n=second) for second in range(200))
    topic = sent(kafka, "surveyed", *late, *(message(1, second, n=0) for second in range(30)), partitions=3)
    address, option = f"kafka://{kafka.sasl_servers}/{topic}", "--option"
    said = [option, "security_protocol=SASL_PLAINTEXT", option, "sasl_mechanism=PLAIN", option, f"sasl_username={USER}"]
    monkeypatch.setenv("SURVEYOR", PASSWORD)
    ran = millrace("new", address, *said, option, "sasl_password=${env:SURVEYOR}", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    # Of 200 messages the first 20 and the last 20 are read, for three partitions share 120.
    assert (
        "surveyed/0: 40 rows, 50.0 % out of order, the worst by 6 s" in ran.stdout
        and "surveyed/2: 0 rows" in ran.stdout
    )
    script = (tmp_path / "surveyed.sql").read_text()
    assert "'${env:SURVEYOR}'" in script and PASSWORD not in script
    ran = millrace("run", "surveyed.sql", "--on", "local", "--until-end", "--json", folder=tmp_path)
    *results, last = map(json.loads, ran.stdout.splitlines())
    source = last["summary"]["sources"]["surveyed"]
    assert (source["received"], source["late"]) == (230, 0) and sum(row["n"] for row in results) == 230
    for path, hint in (("", "kafka://host:9092/topic"), (f"/{kafka.create('nothing')}", "Send it some")):
        ran = millrace("new", f"kafka://{kafka.bootstrap_servers}{path}", folder=tmp_path)
        assert ran.returncode == 2 and hint in ran.stderr


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", [0, 1, 2, 10, 11]),
        ("latest", []),
        ("2026-03-01T00:00:00Z", [2, 10, 11]),
        ("2030-01-01", []),
        ("0:2, 1:1", [2, 11]),
        ("starts/1:2", [0, 1, 2]),
        ("0:99", [10, 11]),
    ],
)
def test_a_stream_begins_where_it_is_told(kafka: Broker, start: str, expected: list[int]) -> None:
    if "starts" not in kafka.topics():
        old, new = (int(datetime(2026, month, 1, tzinfo=UTC).timestamp() * 1000) for month in (2, 3))
        first = [{**message(0, n, n=n), "timestamp": new if n == 2 else old} for n in range(3)]
        sent(kafka, "starts", *first, *({**message(1, n, n=n), "timestamp": new} for n in (10, 11)))
    assert sorted(column(rows(stream_text(kafka, "starts", options={"start": start})))) == expected


def test_a_run_goes_on_where_the_one_before_stood(kafka: Broker, tmp_path: Path) -> None:
    topic = sent(kafka, "restart", message(0, 0, n=0), message(1, 0, n=1))
    text = stream_text(kafka, topic, options={"start": "earliest"})
    assert sorted(column(rows(text, checkpoint=tmp_path / "c", until="available"))) == [0, 1]
    assert column(rows(text, checkpoint=tmp_path / "c", until="available")) == []
    kafka.send(topic, [message(1, 1, n=2)])
    assert column(rows(text, checkpoint=tmp_path / "c", until="available")) == [2]
    kafka.grow(topic, 3)
    kafka.send(topic, [message(2, 2, n=3)])
    assert column(rows(text, checkpoint=tmp_path / "c", until="available")) == [3]


def test_rows_of_aborted_transactions_are_not_read(kafka: Broker) -> None:
    from confluent_kafka import Producer

    topic = sent(kafka, "aborted-in", partitions=1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "aborted-in"})
    producer.init_transactions()
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 2):
        producer.begin_transaction()
        producer.produce(topic, **message(0, number, n=number))
        producer.flush()
        end()
    assert column(rows(stream_text(kafka, topic))) == [0, 2]
    assert column(rows(stream_text(kafka, topic, options={"isolation": "read_uncommitted"}))) == [0, 1, 2, 3]


def test_messages_that_cannot_be_decoded_are_an_error_or_counted(kafka: Broker, tmp_path: Path) -> None:
    topic = sent(kafka, "torn", message(0, 0, n=0), {"partition": 0, "value": b"{"}, message(0, 1, n=2), partitions=1)
    with pytest.raises(MalformedRow, match=r'partition "torn/0", offset 1: "\{" is not a JSON object'):
        rows(stream_text(kafka, topic), checkpoint=tmp_path / "c")
    text = stream_text(kafka, topic, options={"on_malformed": "skip"})
    net = mr.Network().sql(text).sql("CREATE QUERY q AS SELECT n FROM s")
    handle = net.run(on="local", until="end")
    assert column(handle.results("q")) == [0, 2]
    assert handle.metrics().sources["s"].quarantined == 1
    # What came before the fault was committed, and is not read twice.
    assert column(rows(text, checkpoint=tmp_path / "c")) == [2]


@pytest.mark.parametrize("format", ["csv", "raw"])
def test_messages_of_other_formats(kafka: Broker, format: str) -> None:
    topic = kafka.create(f"format-{format}")
    kafka.send(topic, [{"value": "7,2026-01-01T00:00:00"}, {"value": None}])
    if format == "csv":
        text = stream_text(kafka, topic, options={"format": "csv"})
        assert column(rows(text)) == [7], "a message without a value has no time"
        return
    own = f"bootstrap_servers '{kafka.bootstrap_servers}', topic '{topic}', format 'raw'"
    text = (
        "CREATE STREAM s (value STRING, kafka_timestamp TIMESTAMP) TIMESTAMP BY kafka_timestamp ORDERED "
        f"FROM kafka OPTIONS ({own});"
    )
    assert column(rows(text), "value") == ["7,2026-01-01T00:00:00", None]


# A run that goes on


def test_a_new_partition_is_read_while_a_run_is_at_work(kafka: Broker) -> None:
    topic = sent(kafka, "grows", message(0, 0, n=0), partitions=1)
    net = mr.Network().sql(stream_text(kafka, topic)).sql("CREATE QUERY q AS SELECT n FROM s")
    handle = net.run(on="local")
    try:
        eventually(lambda: column(handle.results("q")), [0])
        kafka.grow(topic, 2)
        kafka.send(topic, [message(1, 1, n=1)])
        eventually(lambda: column(handle.results("q")), [0, 1])
    finally:
        handle.stop()


def test_a_dead_partition_holds_nothing_back_and_a_busy_one_is_not_taken_for_silent(kafka: Broker) -> None:
    """Partition 2 has never a row. Partition 1 sends older rows all the time: its windows stay open."""
    topic = kafka.create("silence", 3)
    ets = "DISORDER INTERVAL 1 SECOND ETS ON DEMAND LULL INTERVAL 4 SECONDS"
    query = "SELECT window_start, count(*) AS n FROM s [RANGE 1 SECOND SLIDE 1 SECOND WA ts]"
    net = mr.Network().sql(stream_text(kafka, topic, time=ets)).sql(f"CREATE QUERY q AS {query}")
    handle = net.run(on="local")

    def at(seconds: float) -> dict[str, Any]:
        stamp = datetime.now(UTC) - timedelta(seconds=seconds)
        return {"value": f'{{"n": 1, "ts": "{stamp.isoformat()}"}}'}

    try:
        for _ in range(40):
            kafka.send(topic, [{**at(0), "partition": 0}, {**at(30), "partition": 1}])
            time.sleep(0.1)
        behind = datetime.now(UTC) - timedelta(seconds=28)
        assert all(each < behind for each in column(handle.results("q"), "window_start"))
        assert handle.metrics().sources["s"].late == 0
        eventually(lambda: sum(column(handle.results("q"))), 80)
    finally:
        handle.stop()


# What goes wrong


def test_a_topic_that_there_is_not_is_named(kafka: Broker, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(stream_text(kafka, "nothing-here") + "CREATE QUERY q AS SELECT n FROM s;")
    done = millrace("run", "q.sql", "--on", "local", "--until-end", folder=tmp_path)
    assert done.returncode == 1
    assert 'stream "s" reads topic "nothing-here", which the Kafka broker does not have' in done.stderr
    assert "hint: Create the topic" in done.stderr


def test_a_topic_that_is_deleted_stops_the_run_and_nothing_else(kafka: Broker) -> None:
    topic = sent(kafka, "deleted", message(0, 0, n=0))
    handle = mr.Network().sql(stream_text(kafka, topic)).sql("CREATE QUERY q AS SELECT n FROM s").run(on="local")
    eventually(lambda: column(handle.results("q")), [0])
    kafka.delete(topic)
    with pytest.raises(RunError, match='"deleted'):
        handle.wait(300)


def test_a_topic_that_was_made_anew_is_not_read_on(kafka: Broker, tmp_path: Path) -> None:
    topic = sent(kafka, "anew", message(0, 0, n=0), message(0, 1, n=1), partitions=1)
    text = stream_text(kafka, topic)
    rows(text, checkpoint=tmp_path / "c", until="available")
    kafka.delete(topic)
    eventually(lambda: topic in kafka.topics(), False)
    sent(kafka, topic, message(0, 2, n=2), partitions=1)
    with pytest.raises(RunError, match='partition "anew/0" of stream "s" ends at 1, and has been read up to 2'):
        rows(text, checkpoint=tmp_path / "c", until="available")


def test_a_broker_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, kafka: Broker) -> None:
    monkeypatch.setattr("millrace.connectors.kafka.kafka_source._TIMEOUT", 1.0)
    text = stream_text(kafka, "any").replace(kafka.bootstrap_servers, "127.0.0.1:1")
    with pytest.raises(RunError, match=r'the Kafka broker at "127.0.0.1:1" does not answer for stream "s"') as caught:
        rows(text)
    assert "bootstrap_servers" in caught.value.hint


def test_a_setting_that_the_client_does_not_know_is_refused(kafka: Broker) -> None:
    with pytest.raises(RequestError, match=r'does not take the options of stream "s".*no.such'):
        rows(stream_text(kafka, "any", options={"`no.such`": "1"}))


def test_a_password_is_a_reference_and_is_never_shown(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "me"}
    with pytest.raises(MillraceError, match='"sasl_password" is a secret, and is written in plain') as caught:
        rows(stream_text(kafka, "any", options={**own, "sasl_password": "hunter2"}))
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    monkeypatch.setattr("millrace.connectors.kafka.kafka_source._TIMEOUT", 2.0)
    # This broker has no such listener.
    with pytest.raises(MillraceError) as caught:
        rows(stream_text(kafka, "any", options={**own, "sasl_password": "${env:KAFKA_PASSWORD}"}))
    assert "hunter2" not in str(caught.value)


def test_virtual_time_has_no_topics(kafka: Broker, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(stream_text(kafka, "any") + "CREATE QUERY q AS SELECT n FROM s;")
    done = millrace("run", "q.sql", "--on", "virtual", folder=tmp_path)
    assert (done.returncode, "whose rows arrive in real time" in done.stderr) == (2, True)


def test_python_declares_a_topic_too(kafka: Broker) -> None:
    topic = sent(kafka, "from-python", message(0, 0, n=3))
    net = mr.Network()
    clicks = net.stream(
        "s", "n INT, ts TIMESTAMP", time="ts", source="kafka", bootstrap_servers=kafka.bootstrap_servers, topic=topic
    )
    handle = net.query("q", clicks.select("n")).run(on="local", until="end")
    assert in_order(handle.results("q")) == [{"n": 3}]


@pytest.mark.long
def test_a_run_outlives_a_broker_that_is_killed_and_started_again(tmp_path: Path) -> None:
    with running(tmp_path / "broker") as broker:
        topic = sent(broker, "outlives", *(message(n % 2, n, n=n) for n in range(10)))
        net = mr.Network().sql(stream_text(broker, topic)).sql("CREATE QUERY q AS SELECT n FROM s")
        handle = net.run(on="local", checkpoint=tmp_path / "c")
        try:
            for round_ in range(1, 4):
                eventually(lambda: sorted(column(handle.results("q"))), list(range(10 * round_)))
                broker.restart()
                broker.send(topic, (message(n % 2, n, n=n) for n in range(10 * round_, 10 * round_ + 10)))
            eventually(lambda: sorted(column(handle.results("q"))), list(range(40)))
        finally:
            handle.stop()
