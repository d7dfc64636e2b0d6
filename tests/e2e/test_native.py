"""Streams that Spark reads and sinks that Spark writes, beside our own."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError

import millrace as mr
from millrace.errors import MillraceError, RequestError, RunError
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.language import parse_network
from tests.background import running
from tests.e2e.commands import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
COUNTS = "SELECT window, k, count(*) AS n, sum(v) AS total FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k"
FILES = 3


def write_files(folder: Path) -> None:
    """Rows as files of both kinds: keys that alternate, and times of which one in each file is late."""
    for kind in ("orc", "parquet"):
        (folder / kind).mkdir()
    for number in range(FILES):
        times = [(number * 60 + offset) * SECOND for offset in (0, 20, 40, 5, 70)]
        columns = {"k": list("ababa"), "v": pa.array(range(number, number + 5), pa.int32()), "w": [0.5] * 5}
        rows = pa.table({**columns, "ts": pa.array(times, TIMESTAMP)})
        pq.write_table(rows, folder / "parquet" / f"{number}.parquet")
        orc.write_table(rows, folder / "orc" / f"{number}.orc")
        time.sleep(0.01)  # Spark reads files by the time of their last change.


def script(source: str, sink: str = "") -> str:
    stream = f"CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS {source}"
    declared = f"CREATE SINK o {sink};" if sink else ""
    return f"{stream};\n{declared} CREATE QUERY q {'INTO o' if sink else ''} AS {COUNTS};"


def opened(text: str, session: Any, **options: Any) -> Any:
    from millrace.hosts.spark.host import SparkRun

    return SparkRun(parse_network(text), RunOptions("spark", **options), session=session)


def by_local(text: str) -> LocalRun:
    return LocalRun(parse_network(text), RunOptions("local", "end"))


def rows_of(tables: list[pa.Table]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for table in tables for row in table.to_pylist())


def test_rows_from_spark_answer_as_rows_from_files(tmp_path: Path, spark_session: Any) -> None:
    write_files(tmp_path)
    ours = by_local(script(f"FROM parquet OPTIONS (path '{tmp_path / 'parquet'}')"))
    known = ours.run()
    source = f"FROM orc OPTIONS (path '{tmp_path / 'orc'}', maxFilesPerTrigger 1)"
    theirs = opened(script(source), spark_session, ending="end", checkpoint=tmp_path / "state")
    report = theirs.run()
    assert rows_of(theirs.memory["q"]) == rows_of(ours.memory["q"]) != []
    assert report.sources["s"] == known.sources["s"]
    assert report.sources["s"].late == FILES
    assert report.steps == FILES + 1, "the limit of a trigger reaches Spark"
    assert "stream_s" in (tmp_path / "state" / "spark" / "offsets" / "0").read_text(), "a source has its stream's name"


def test_a_streaming_data_frame_is_a_stream(tmp_path: Path, spark_session: Any) -> None:
    write_files(tmp_path)
    assert mr.spark_session() is spark_session
    columns = "k STRING, v INT, w DOUBLE, ts TIMESTAMP"
    reader = spark_session.readStream.schema(columns).option("maxFilesPerTrigger", 1).format("orc")
    frame = reader.name("mine").load(str(tmp_path / "orc")).where("k = 'a'")
    net = mr.Network()
    declared = net.stream("s", frame, time="ts", disorder="30 seconds")
    net.query("q", declared.window(range="1 minute").group_by("k").agg(n="count(*)", total="sum(v)"))
    answer = net.run(until="end").results("q")
    fed = mr.Network()
    tables = [pq.read_table(path) for path in sorted((tmp_path / "parquet").iterdir())]
    declared = fed.stream("s", columns, time="ts", disorder="30 seconds", source=tables).where("k = 'a'")
    fed.query("q", declared.window(range="1 minute").group_by("k").agg(n="count(*)", total="sum(v)"))
    assert rows_of([answer]) == rows_of([fed.run(on="local", until="end").results("q")]) != []
    with pytest.raises(RequestError, match="not streaming"):
        net.stream("t", spark_session.read.schema(columns).orc(str(tmp_path / "orc")), time="ts")
    with pytest.raises(RequestError, match='"s" comes from "dataframe", which only Spark can read'):
        net.run(on="local", until="end")


def test_results_are_a_streaming_data_frame_with_each_row_once(tmp_path: Path, spark_session: Any) -> None:
    (tmp_path / "in").mkdir()
    net = mr.Network()
    stream = net.stream("s", "v INT, ts TIMESTAMP", time="ts", source="csv", path=str(tmp_path / "in"))
    net.query("q", stream.select("v", double="v * 2"), sink="parquet", path=str(tmp_path / "out"))
    net.query("kept", stream.select("v"))
    frame = net.dataframe("q", spark_session).where("v > 1")

    def relayed(number: int) -> list[int]:
        (tmp_path / "in" / f"{number}.csv").write_text(
            f"v,ts\n{number},2024-01-0{number}\n{number + 5},2024-01-0{number}\n"
        )
        net.run(on="local", until="available", checkpoint=tmp_path / "state")
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "pipeline"))
        writer.trigger(availableNow=True).start(str(tmp_path / "relayed")).awaitTermination()
        return sorted(row["double"] for row in spark_session.read.parquet(str(tmp_path / "relayed")).collect())

    assert relayed(1) == [12]
    assert relayed(2) == [4, 12, 14]
    with pytest.raises(RequestError, match='the results of query "kept" go to "memory", and a DataFrame reads parquet'):
        net.dataframe("kept")
    with pytest.raises(RequestError, match='there is no query "none"'):
        net.dataframe("none")


def test_results_are_read_by_a_session_that_knows_no_names_of_sources(tmp_path: Path, spark_session: Any) -> None:
    """As those of Spark Connect and of Declarative Pipelines do not."""
    named = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    net = mr.Network()
    stream = net.stream("s", "v INT, ts TIMESTAMP", time="ts", source="csv", path=str(tmp_path / "in"))
    net.query("q", stream.select("v"), sink="parquet", path=str(tmp_path / "out"))
    spark_session.conf.set(named, "false")
    try:
        assert net.dataframe("q", spark_session).schema.names == ["v"]
    finally:
        spark_session.conf.set(named, "true")


def paced_source(steps: list[list[list[int]]]) -> type:
    """A source of several partitions: in each micro-batch the seconds of the rows that each of them sends."""
    # Made here, so that worker processes need not import this file.
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

    class Part(InputPartition):
        def __init__(self, step: int, number: int) -> None:
            self.step, self.number = step, number

    class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
        def initialOffset(self) -> dict[str, int]:
            return {"step": 0}

        def getDefaultReadLimit(self) -> ReadLimit:
            return ReadMaxRows(1)

        def prepareForTriggerAvailableNow(self) -> None:
            pass

        def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
            return {"step": min(start["step"] + 1, len(steps))}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Part]:
            return [Part(step, each) for step in range(start["step"], end["step"]) for each in range(len(steps[step]))]

        def read(self, part: Any) -> Iterator[tuple[int, Any]]:
            from datetime import UTC, datetime

            for second in steps[part.step][part.number]:
                yield part.number, datetime.fromtimestamp(second, UTC)

    class Paced(DataSource):
        @classmethod
        def name(cls) -> str:
            return "paced"

        def schema(self) -> str:
            return "partition INT, ts TIMESTAMP"

        def streamReader(self, schema: Any) -> Reader:
            return Reader()

    return Paced


def test_the_slowest_partition_holds_a_stream_back(tmp_path: Path, spark_session: Any) -> None:
    # The second partition is slow, and the third one silent after its first row.
    steps = [[[0, 50, 130], [10], [65]], [[140, 190], [70, 75], []], [[300], [200], []]]
    spark_session.dataSource.register(paced_source(steps))
    text = """
        CREATE STREAM s (partition INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PARTITIONED BY (partition) FROM paced;
        CREATE QUERY q AS SELECT window, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];"""
    run = opened(text, spark_session, ending="available", checkpoint=tmp_path / "state")
    assert run.run().sources["s"].late == 0
    sources = [record["sources"]["s"] for _, record in CommitLog(tmp_path / "state" / "commits").records()]
    assert [known["bound"] // SECOND for known in sources] == [10, 65, 65]
    assert [row[-1] for row in rows_of(run.memory["q"])] == [3], "only the first minute is over in all partitions"
    # The same checkpoint goes on from there, to the end of the stream.
    run = opened(text, spark_session, ending="end", checkpoint=tmp_path / "state")
    assert run.run().sources["s"].received == 11
    assert [row[-1] for row in rows_of(run.memory["q"])] == [3, 2, 2, 1]


class LineServer:
    """Sends lines to whoever connects, on the loopback."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._talking: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self._talking.append(self._listening.accept()[0])
            except OSError:
                return

    def say(self, *lines: str) -> None:
        for each in self._talking:
            each.sendall("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        for each in (self._listening, *self._talking):
            each.close()


def test_a_socket_and_a_rate_run_until_they_are_stopped(spark_session: Any) -> None:
    server = LineServer()
    text = f"""
        CREATE STREAM lines (value STRING, came TIMESTAMP) INTERNAL TIMESTAMP AS came
          FROM socket OPTIONS (host '127.0.0.1', port {server.port});
        CREATE STREAM ticks (value BIGINT, `timestamp` TIMESTAMP) TIMESTAMP BY `timestamp` DISORDER INTERVAL 1 SECOND
          FROM rate OPTIONS (rowsPerSecond 20, numPartitions 2);
        CREATE QUERY heard AS SELECT upper(value) AS said FROM lines WHERE value <> 'noise';
        CREATE QUERY counted AS SELECT window, count(*) AS n, max(value) - min(value) + 1 AS span
          FROM ticks [RANGE 1 SECOND SLIDE 1 SECOND WA `timestamp`];"""
    run = opened(text, spark_session)
    with running(run):
        wait_for(lambda: run.memory["counted"])
        server.say("one", "noise", "two")
        wait_for(lambda: run.memory["heard"])
        server.say("three")
        wait_for(lambda: len(rows_of(run.memory["heard"])) == 3)
    server.close()
    assert rows_of(run.memory["heard"]) == [("ONE",), ("THREE",), ("TWO",)]
    counts = rows_of(run.memory["counted"])
    assert all(row[-2] == row[-1] for row in counts), "each value comes once"
    assert run.report().sources["ticks"].late == 0


def test_results_go_to_a_sink_of_sparks_once_each(tmp_path: Path, spark_session: Any) -> None:
    write_files(tmp_path)
    source = f"FROM parquet OPTIONS (path '{tmp_path / 'parquet'}', max_files_per_trigger 1)"
    text = script(source, f"TO orc OPTIONS (path '{tmp_path / 'out'}', compression 'none')")
    opened(text, spark_session, ending="available", checkpoint=tmp_path / "state").run()
    first = spark_session.read.orc(str(tmp_path / "out")).count()
    opened(text, spark_session, ending="end", checkpoint=tmp_path / "state").run()
    ours = by_local(script(source))
    ours.run()
    relayed = [tuple(row) for row in spark_session.read.orc(str(tmp_path / "out")).select("k", "n", "total").collect()]
    expected = [row[-3:] for row in rows_of(ours.memory["q"])]
    assert 0 < first < len(expected)
    assert sorted(relayed) == sorted(expected)
    with pytest.raises(RequestError, match="holds results of another run"):
        opened(text, spark_session, ending="end").run()


def test_a_relay_follows_and_says_what_made_it_fail(tmp_path: Path, spark_session: Any) -> None:
    from millrace.hosts.spark.sink.relay import Relay

    def relay(path: Path, name: str) -> Relay:
        text = script("FROM iterable", f"TO orc OPTIONS (path '{path}')")
        (query,) = parse_network(text).queries
        return Relay(spark_session, query, tmp_path / "results", tmp_path / name, "100 milliseconds")

    following = relay(tmp_path / "out", "one")
    following.start()
    times = pa.array([0], TIMESTAMP)
    rows = pa.table({"window_start": times, "window_end": times, "k": ["a"], "n": [1], "total": [2]})
    pq.write_table(rows, tmp_path / ".hidden")
    (tmp_path / ".hidden").replace(tmp_path / "results" / "part-00000000-0000.parquet")
    wait_for(lambda: list((tmp_path / "out").glob("part-*.orc")))
    following.check()
    following.drain()
    assert [row["n"] for row in spark_session.read.orc(str(tmp_path / "out")).collect()] == [1]
    (tmp_path / "file").write_text("")
    failing = relay(tmp_path / "file" / "out", "two")
    with pytest.raises(RunError, match='sink "o" of query "q" failed'):
        failing.start()
        wait_for(lambda: failing.check())


SPARKS_KAFKA = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def has_kafka(session: Any) -> bool:
    try:
        session._jvm.java.lang.Class.forName(SPARKS_KAFKA)
    except Py4JJavaError:
        # Java cannot be asked whether it has a class: it says no by raising.
        return False
    return True


def test_what_spark_does_not_find_is_said(tmp_path: Path, spark_session: Any) -> None:
    write_files(tmp_path)
    sources = {
        "FROM orcc OPTIONS (path 'x')": 'stream "s" names "orcc", which Spark does not find',
        "FROM rate": 'declares the column "k", which its source does not have(.|\n)*timestamp, value',
        "FROM socket OPTIONS (port 1)": 'Spark cannot read stream "s" from "socket"',
        "FROM dataframe": "none was given",
    }
    if not has_kafka(spark_session):
        sources[f"FROM '{SPARKS_KAFKA}' OPTIONS (subscribe 'x')"] = "does not find(.|\n)*spark-sql-kafka"
    for source, message in sources.items():
        with pytest.raises(RequestError, match=message):
            opened(script(source), spark_session, ending="end").run()
    unnamed = f"FROM parquet OPTIONS (path '{tmp_path / 'parquet'}')"
    with pytest.raises(MillraceError, match='sink "o" names "nowhere", which Spark does not find'):
        opened(script(unnamed, "TO nowhere"), spark_session, ending="end").run()


def test_kafka_when_its_package_is_there(spark_session: Any) -> None:
    if not has_kafka(spark_session):
        pytest.skip("spark-sql-kafka-0-10 is not on Spark's class path; runs where spark.jars.packages names it")
    text = f"""
        CREATE STREAM s (value STRING, partition INT, `timestamp` TIMESTAMP)
          TIMESTAMP BY `timestamp` ORDERED PARTITIONED BY (partition)
          FROM '{SPARKS_KAFKA}' OPTIONS (kafka.bootstrap.servers '127.0.0.1:1', subscribe 'bids');
        SELECT value FROM s;"""
    from millrace.hosts.spark.source.native_streams import load

    (stream,) = parse_network(text).streams()
    assert {"value", "partition", "timestamp", "offset"} <= set(load(spark_session, stream).columns)
