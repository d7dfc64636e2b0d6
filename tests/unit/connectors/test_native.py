from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from millrace.connectors.files.file_options import read_options
from millrace.connectors.inputs import open_input
from millrace.errors import RequestError
from millrace.hosts.sinks.sinks import file_sinks
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork

STREAM = "CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED"


def network(source: str, sink: str = "memory") -> QueryNetwork:
    return parse_network(f"{STREAM} FROM {source}; CREATE SINK o TO {sink}; CREATE QUERY q INTO o AS SELECT v FROM s")


@pytest.mark.parametrize(
    ("written", "format"),
    [
        ("Kafka", "kafka"),
        ("'rate-micro-batch'", "rate-micro-batch"),
        ("`rate-micro-batch`", "rate-micro-batch"),
        ('"com.example.Source"', "com.example.Source"),
    ],
)
def test_any_format_can_be_named(written: str, format: str) -> None:
    found = network(written, written)
    assert found.streams()[0].connector.format == format
    assert found.queries[0].sink.connector.format == format


def test_options_of_any_name_are_kept() -> None:
    options = "OPTIONS (kafka.bootstrap.servers 'h:1', maxOffsetsPerTrigger 100, `a-b` 'c')"
    (stream,) = network(f"kafka {options}").streams()
    assert stream.connector.options == {
        "kafka.bootstrap.servers": "h:1",
        "maxoffsetspertrigger": "100",
        "a-b": "c",
    }


@pytest.mark.parametrize(
    ("source", "fact", "hint"),
    [
        ("rate", 'comes from "rate", which only Spark can read', "Run it on Spark"),
        ("cvs", 'comes from "cvs", which only Spark can read', 'Did you mean "csv"?'),
        ("iterable", "was given none", "from Python"),
    ],
)
def test_a_host_without_spark_refuses_its_sources(source: str, fact: str, hint: str) -> None:
    (stream,) = network(source).streams()
    with pytest.raises(RequestError) as raised:
        open_input(stream, ["v"], None, None)
    assert fact in raised.value.fact
    assert hint in raised.value.hint


def test_a_host_without_spark_refuses_its_sinks() -> None:
    queries = network("csv", "orc OPTIONS (path 'out')").queries
    with pytest.raises(RequestError, match='sink "o" goes to "orc", which only Spark can write'):
        file_sinks(queries)
    assert file_sinks(queries, relayed=True) == {}


def test_a_sink_of_sparks_keeps_away_from_what_a_stream_reads(tmp_path: Path) -> None:
    queries = network(f"csv OPTIONS (path '{tmp_path}')", f"orc OPTIONS (path '{tmp_path}')").queries
    with pytest.raises(RequestError, match="writes to the folder that stream"):
        file_sinks(queries, relayed=True)


@pytest.mark.parametrize("key", ["max_files_per_trigger", "max_bytes_per_trigger"])
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_micro_batch_of_files_can_be_limited(format: str, key: str) -> None:
    read_options(format, {key: "1000"})
    with pytest.raises(RequestError, match=f'option "{key}" does not take "0"'):
        read_options(format, {key: "0"})


@pytest.mark.slow
def test_a_file_with_sources_of_sparks_is_checked_without_spark(tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text(f"{STREAM} FROM rate; CREATE SINK o TO orc; CREATE QUERY q INTO o AS SELECT v FROM s;")
    program = (
        "import sys; from millrace.commands.command_line import main; main(sys.argv[1:]);"
        "assert 'pyspark' not in sys.modules"
    )
    ran = subprocess.run([sys.executable, "-c", program, "check", str(file)], capture_output=True, text=True)
    assert (ran.returncode, "no fault" in ran.stdout) == (0, True), ran.stderr
