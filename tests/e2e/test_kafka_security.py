"""Passwords and TLS, on a real broker: who comes with the right ones reads and writes, others are told what to mend.

The secret is in no output and in no file that a run keeps.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, millrace
from tests.e2e.kafka_streams import message, sent
from tests.kafka_broker import PASSWORD, USER, Broker

pytestmark = pytest.mark.slow

WRONG = "battery-staple-8"
SASL = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": USER}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setenv("WRONG_PASSWORD", WRONG)


def by_password(kafka: Broker, reference: str = "env:KAFKA_PASSWORD") -> dict[str, str]:
    return {"bootstrap_servers": kafka.sasl_servers, **SASL, "sasl_password": f"${{{reference}}}"}


def by_tls(kafka: Broker) -> dict[str, str]:
    return {
        "bootstrap_servers": kafka.ssl_servers, "security_protocol": "SSL", "ssl_ca_location": str(kafka.authority),
    }  # fmt: skip


def script(folder: Path, source: dict[str, str], sink: dict[str, str], topic: str, out: str) -> Path:
    """A script that copies one topic to another."""
    read, written = (", ".join(f"{name} '{value}'" for name, value in each.items()) for each in (source, sink))
    (folder / "q.sql").write_text(
        "CREATE STREAM s (n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED "
        f"FROM kafka OPTIONS ({read}, topic '{topic}');"
        f"CREATE SINK k TO kafka OPTIONS ({written}, topic '{out}');"
        "CREATE QUERY q INTO k AS SELECT n FROM s;"
    )
    return folder / "q.sql"


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_right_secrets_read_and_write_and_are_kept_nowhere(
    host: str, run_on: RunOn, kafka: Broker, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    reference = "env:KAFKA_PASSWORD"
    if host == "spark":  # the processes of a session that is shared have the environment of its start
        held = tmp_path_factory.mktemp("secrets") / "password"
        held.write_text(PASSWORD)
        reference = f"file:{held}"
    topic = sent(kafka, f"secured-{host}", message(0, 0, n=1), message(1, 1, n=2))
    out = kafka.create(f"secured-out-{host}")
    said = ""
    passes, tls = by_password(kafka, reference), by_tls(kafka)
    pairs = ((passes, tls), (tls, passes))[: 1 if host == "spark" else 2]
    for source, sink in pairs:
        folder = tmp_path / source["security_protocol"]
        folder.mkdir()
        written = script(folder, source, sink, topic, out)
        ran = run_on(host, written, "--until-end", "--checkpoint", folder / "state", folder=folder)
        assert ran.returncode == 0, ran.stderr
        said += ran.stdout + ran.stderr
    said += millrace("explain", written, folder=folder).stdout
    found = sorted(each.value() for each in kafka.messages(out))
    assert found == sorted([b'{"n":1}', b'{"n":2}'] * len(pairs))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 4
    assert PASSWORD not in said
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.parametrize("end", ["source", "sink"])
@pytest.mark.parametrize(
    ("how", "fact", "hint"),
    [
        ("password", "Invalid username or password", "Correct sasl_mechanism, sasl_username and sasl_password"),
        ("mechanism", "Unsupported SASL mechanism", "Correct sasl_mechanism, sasl_username and sasl_password"),
        ("authority", "broker certificate could not be verified", "in ssl_ca_location"),
    ],
)
def test_the_wrong_ones_are_refused_at_once_with_what_to_mend(
    how: str, fact: str, hint: str, end: str, kafka: Broker, tmp_path: Path
) -> None:
    topic, open_one = f"refused-{how}-{end}", {"bootstrap_servers": kafka.bootstrap_servers}
    kafka.create(topic)
    wrong = {
        "password": by_password(kafka, "env:WRONG_PASSWORD"),
        "mechanism": {**by_password(kafka), "sasl_mechanism": "SCRAM-SHA-256"},
        "authority": {name: value for name, value in by_tls(kafka).items() if name != "ssl_ca_location"},
    }[how]
    source, sink = (wrong, open_one) if end == "source" else (open_one, wrong)
    # A stream is not opened by check: what it reads is known when it runs.
    command = ["run", "--on", "local", "--until-end"] if end == "source" else ["check"]
    ran = millrace(command[0], script(tmp_path, source, sink, topic, topic), *command[1:], folder=tmp_path)
    owner = 'stream "s"' if end == "source" else "the sink"
    assert ran.returncode == 1
    refused = f'the connection of {owner} to the Kafka broker at "{wrong["bootstrap_servers"]}" is refused: '
    assert refused in ran.stderr and fact in ran.stderr
    assert "hint: " in ran.stderr and hint in ran.stderr
    assert PASSWORD not in ran.stderr and WRONG not in ran.stderr


def test_a_listener_that_wants_more_than_it_is_given_is_hinted_at(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("millrace.connectors.kafka.kafka_source._TIMEOUT", 1.0)
    topic, open_one = kafka.create("unsecured"), {"bootstrap_servers": kafka.bootstrap_servers}
    written = script(tmp_path, {"bootstrap_servers": kafka.ssl_servers}, open_one, topic, topic)
    ran = millrace("run", written, "--on", "local", "--until-end", folder=tmp_path)
    assert "does not answer for stream" in ran.stderr
    assert "A listener with TLS or passwords needs security_protocol too." in ran.stderr


@pytest.mark.parametrize("end", ["source", "sink"])
def test_a_topic_that_is_not_allowed_is_named(end: str, kafka: Broker, tmp_path: Path) -> None:
    topic, other = sent(kafka, f"forbidden-{end}", message(0, 0, n=1)), sent(kafka, f"allowed-{end}")
    kafka.forbid(topic)
    source, sink = (topic, other) if end == "source" else (other, topic)
    written = script(tmp_path, by_password(kafka), by_password(kafka), source, sink)
    ran = millrace("run", written, "--on", "local", "--until-end", folder=tmp_path)
    assert ran.returncode == 1
    assert f'topic "{topic}"' in ran.stderr and "Topic authorization failed" in ran.stderr
    assert kafka.messages(other) == []
