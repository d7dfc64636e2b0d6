"""A Kafka broker of the tests' own: Apache Kafka, one node on the loopback, from jars that Maven fetched.

Rules:
- The jars are fetched once, into `millrace-tests/` of the user's cache folder (`XDG_CACHE_HOME`), and so is a formatted
  data folder, of which each broker gets a copy.
- Where Maven or Java is missing, or Maven cannot fetch, tests are skipped with the reason.
- A broker that was stopped or killed starts again on the same data folder and the same port.
- Beside the open listener there is one that wants a password (`sasl_servers`, SASL_PLAINTEXT with PLAIN) and one that
  speaks TLS (`ssl_servers`), with a certificate that it has signed itself (`authority`).
- Who comes without a password may do everything. Others may use what no rule is about; see `forbid`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, NoReturn

import pytest

VERSION = "4.1.0"
USER, PASSWORD = "reader", "correct-horse-7"
"""Who may come to the listener that wants a password."""
_PATIENCE = 240.0
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace.tests</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_NOTHING_ELSE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_BROKER = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
# A small heap, one collector thread and the quick compiler: a broker of a test lives for a minute.
_JAVA = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
    "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    ),
    "listener.name.ssl.ssl.keystore.type": "PEM",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "1",
    "log.retention.hours": "-1",
}


def jars(name: str, *artifacts: str, alone: bool = False) -> list[Path]:
    """The jars of artefacts ("group:name:version"), fetched once; skips where they cannot be.

    With them comes all that they need, unless they are to come alone.
    """
    folder = _cache() / name
    with _locked(name):
        if not (folder / "done").exists():
            _fetch(folder, artifacts, _NOTHING_ELSE if alone else "")
            (folder / "done").touch()
    return sorted((folder / "jars").glob("*.jar"))


class Broker:
    """A broker whose data is in a folder; `settings` are added to those of every broker of the tests."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        _client()
        self.folder = folder
        self._jars = ":".join(map(str, jars(f"kafka-{VERSION}", *_BROKER)))
        self.port, *others = _free_ports(4)
        self.bootstrap_servers, self.sasl_servers, self.ssl_servers, controller = (
            f"127.0.0.1:{port}" for port in (self.port, *others)
        )
        self.authority = folder / "authority.pem"
        listeners = (
            f"PLAINTEXT://{self.bootstrap_servers},SASL_PLAINTEXT://{self.sasl_servers},SSL://{self.ssl_servers}"
        )
        self._settings = {
            **_SETTINGS,
            "listeners": f"{listeners},CONTROLLER://{controller}",
            "advertised.listeners": listeners,
            "listener.name.ssl.ssl.keystore.location": str(folder / "identity.pem"),
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(folder / "data"),
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start on the data folder; returns when the broker answers."""
        assert self._process is None, "the broker runs already"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._prepare()
        command = ["java", *_JAVA, _LOGGING, "-cp", self._jars, "kafka.Kafka", self.folder / "server.properties"]
        with (self.folder / "log").open("ab") as log:
            # A group of its own: Ctrl-C ends it with the tests, and not before.
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the broker in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the broker at once, as `kill -9` does."""
        self._end(signal.SIGKILL)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A time in which the broker does not answer, and keeps what it has."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Kill the broker and start it again on what it had written."""
        self.kill()
        self.start()

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        """Make a topic; its name."""
        from confluent_kafka.admin import NewTopic

        admin = self._admin()
        admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result()
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """Let a topic have that many partitions."""
        from confluent_kafka.admin import NewPartitions

        admin = self._admin()
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        admin = self._admin()
        admin.delete_topics([topic])[topic].result()

    def forbid(self, topic: str) -> None:
        """Let no one use a topic but who comes without a password."""
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            ResourcePatternType,
            ResourceType,
        )

        rule = (f"User:{USER}", "*", AclOperation.ALL, AclPermissionType.DENY)
        binding = AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, *rule)
        admin = self._admin()
        admin.create_acls([binding])[binding].result()
        until = time.monotonic() + _PATIENCE
        while self._shows(topic):
            assert time.monotonic() < until, "the rule does not come into force"

    def _shows(self, topic: str) -> bool:
        """True if who comes with a password is shown the topic."""
        from confluent_kafka.admin import AdminClient

        secrets = {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
        servers = {"bootstrap.servers": self.sasl_servers, "security.protocol": "SASL_PLAINTEXT"}
        shown = AdminClient({**servers, **secrets}).list_topics(topic, timeout=_PATIENCE).topics[topic]
        return shown.error is None

    def topics(self) -> list[str]:
        """The topics that there are."""
        return list(self._admin().list_topics(timeout=_PATIENCE).topics)

    def send(self, topic: str, messages: Iterable[Mapping[str, Any]]) -> None:
        """Write messages, each given by the arguments of `Producer.produce`, and wait until the broker has them."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 5})
        for message in messages:
            while True:
                try:
                    producer.produce(topic, **message)
                    break
                except BufferError:
                    producer.poll(0.1)
        left = producer.flush(_PATIENCE)
        assert left == 0, f"the broker did not take {left} messages"

    def messages(self, topic: str, isolation: str = "read_committed") -> list[Any]:
        """All messages of a topic that are there now, partition by partition."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "tests",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            partitions = consumer.list_topics(topic, _PATIENCE).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            found: list[Any] = []
            ended: set[int] = set()
            while len(ended) < len(partitions):
                for message in consumer.consume(10_000, 0.5):
                    if message.error() is None:
                        found.append(message)
                    else:
                        assert message.error().name() == "_PARTITION_EOF", message.error()
                        ended.add(message.partition())
            return sorted(found, key=lambda message: (message.partition(), message.offset()))
        finally:
            consumer.close()

    def _admin(self) -> Any:
        """A client for topics; what it promised is void when it is no longer referred to."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.bootstrap_servers})

    def _prepare(self) -> None:
        if (self.folder / "data").exists():
            return
        shutil.copytree(self._formatted(), self.folder / "data")
        self._sign()
        lines = [f"{name}={value}\n" for name, value in self._settings.items()]
        (self.folder / "server.properties").write_text("".join(lines))

    def _sign(self) -> None:
        """Make the key and the certificate of the listener that speaks TLS."""
        identity, name = self.folder / "identity.pem", ["-subj", "/CN=tests", "-addext", "subjectAltName=IP:127.0.0.1"]
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        command = ["openssl", "req", "-x509", *kind, *name, "-keyout", identity, "-out", self.authority]
        subprocess.run(command, check=True, capture_output=True)
        with identity.open("a") as file:
            file.write(self.authority.read_text())

    def _formatted(self) -> Path:
        """A data folder that no broker has used; to format one takes as long as to start a broker."""
        folder = _cache() / f"kafka-{VERSION}-data"
        with _locked(folder.name):
            if not folder.exists():
                made = folder.with_name(f"{folder.name}-new")
                shutil.rmtree(made, ignore_errors=True)
                made.mkdir()
                settings = {**self._settings, "log.dirs": str(made / "data")}
                lines = [f"{name}={value}\n" for name, value in settings.items()]
                (made / "settings").write_text("".join(lines))
                tool = ["kafka.tools.StorageTool", "format", "-t", "millraceTestsBroker1-w", "-c", made / "settings"]
                subprocess.run(["java", *_JAVA, "-cp", self._jars, *tool], check=True, capture_output=True)
                (made / "data").rename(folder)
                shutil.rmtree(made)
        return folder

    def _wait(self) -> None:
        """Return when the broker answers."""
        from confluent_kafka import KafkaException

        assert self._process is not None
        until = time.monotonic() + _PATIENCE
        while True:
            if self._process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"the broker did not start:\n{(self.folder / 'log').read_text()[-4000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                if self._admin().list_topics(timeout=5).brokers:
                    return
            except (OSError, KafkaException):
                time.sleep(0.1)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_PATIENCE)
            self._process = None


@contextmanager
def running(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A broker for the time of a block."""
    broker = Broker(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def _skip(reason: object) -> NoReturn:
    """Leave out a test that needs a broker, and say when it runs."""
    pytest.skip(
        f"a Kafka broker cannot be had: {reason}; runs where Maven can fetch Apache Kafka, and Java is 17 or newer"
    )


def _client() -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'millrace[kafka]'")


def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millrace-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """One process at a time fetches what all share."""
    with (_cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, artifacts: Iterable[str], exclusions: str) -> None:
    for program in ("java", "mvn", "openssl"):
        if shutil.which(program) is None:
            _skip(f'there is no "{program}"')
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    dependencies = (_DEPENDENCY.format(*artifact.split(":"), exclusions) for artifact in artifacts)
    (folder / "pom.xml").write_text(_POM.format("".join(dependencies)))
    command = ["mvn", "-q", "-B", _COPY, "-DoutputDirectory=jars", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        _skip("Maven took more than ten minutes")
    if done.returncode:
        _skip((done.stdout + done.stderr).strip()[-500:])


def _free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, below those that the system gives to connections.

    So no connection has one while its broker is down; not even one to that broker, which would then reach itself.
    """
    sockets: list[socket.socket] = []
    while len(sockets) < count:
        with suppress(OSError):
            sockets.append(socket.create_server(("127.0.0.1", SystemRandom().randrange(10_000, 32_000))))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
