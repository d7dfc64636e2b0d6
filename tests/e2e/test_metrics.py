"""/metrics from outside: what a scraper reads is what the test has put in, by counts and a clock of the test's own."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest

import millrace as mr
from tests.e2e.commands import Started, millrace_process, wait_for
from tests.prometheus import Series, parse, value

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM a (k INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'a', on_malformed 'skip');
CREATE STREAM b (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'b');
CREATE SINK out TO csv OPTIONS (path 'out');
CREATE QUERY both INTO out AS SELECT k, count(*) AS n FROM a UNION b [RANGE 1 SECOND SLIDE 1 SECOND WA ts] GROUP BY k;
"""


def scrape(url: str) -> Series:
    with urlopen(f"{url}/metrics") as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parse(answer.read().decode())


def add(folder: Path, name: str, number: int, *rows: str) -> None:
    """A file of a stream, moved in whole."""
    (folder / name).mkdir(exist_ok=True)
    path = folder / name / f"{number:04d}.csv"
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("\n".join(["k,ts", *rows]) + "\n")
    hidden.replace(path)


def text_of(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S.%f")


def test_a_scraper_sees_what_was_put_in_while_a_run_works(tmp_path: Path) -> None:
    (tmp_path / "both.sql").write_text(SCRIPT)
    start = datetime(1970, 1, 1) + timedelta(seconds=time.time() - 100)
    times = [text_of(start + timedelta(seconds=each)) for each in (0, 5, 10, 3)]
    add(tmp_path, "a", 1, *(f"{k},{ts}" for k, ts in zip((1, 2, 1, 3), times, strict=True)), "x,not a time")
    (tmp_path / "b").mkdir()
    with Started("run", "both.sql", "--on", "local", "--serve", "0", folder=tmp_path) as started:
        assert started.process.stderr is not None
        url = re.search(r"http://\S+", started.process.stderr.readline())
        assert url is not None
        wait_for(lambda: value(scrape(url[0]), "millrace_rows_in_total", stream="a") == 5)
        before = time.time()
        found = scrape(url[0])
        after = time.time()
        counts = {
            name: value(found, f"millrace_rows_{name}_total", stream="a")
            for name in ("in", "late", "quarantined", "shed", "superseded")
        }
        assert counts == {"in": 5, "late": 1, "quarantined": 1, "shed": 0, "superseded": 0}
        assert value(found, "millrace_rows_in_total", stream="b") == 0
        # Stream b has sent nothing, so nothing can leave, and the aggregate holds a partial result per window.
        assert value(found, "millrace_rows_out_total", query="both") == 0
        (operator,) = {
            dict(labels)["operator"]
            for name, labels in found
            if name.endswith("idle_wait_seconds_total")
            if "aggregate" in dict(labels)["operator"]
        }
        assert value(found, "millrace_rows_held", operator=operator) == 3
        assert value(found, "millrace_state_bytes", operator=operator) > 0
        newest = (start - datetime(1970, 1, 1)).total_seconds() + 10
        assert before - newest - 0.01 <= value(found, "millrace_event_time_lag_seconds", stream="a") <= after - newest
        grown_by_clock(url[0], operator)
        add(tmp_path, "b", 1, f"1,{text_of(start + timedelta(seconds=60))}")
        add(tmp_path, "a", 2, f"1,{text_of(start + timedelta(seconds=61))}")
        wait_for(lambda: value(scrape(url[0]), "millrace_rows_out_total", query="both") == 3)
        assert started.interrupt()[0] == 0
    written = [line for path in sorted((tmp_path / "out").glob("part-*")) for line in path.read_text().splitlines()[1:]]
    assert len(written) == 3


def grown_by_clock(url: str, operator: str) -> None:
    """The age of a promise, the lag and the idle-waiting grow as the test's own clock does while nothing comes."""
    names = {
        "punctuation_age_seconds": {"stream": "a"},
        "event_time_lag_seconds": {"stream": "a"},
        "idle_wait_seconds_total": {"operator": operator},
    }
    early = time.monotonic()
    first = scrape(url)
    began = time.monotonic()
    time.sleep(0.3)
    ended = time.monotonic()
    second = scrape(url)
    late = time.monotonic()
    for name, labels in names.items():
        grown = value(second, f"millrace_{name}", **labels) - value(first, f"millrace_{name}", **labels)
        assert ended - began - 0.01 <= grown <= late - early + 0.01, name


@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_all_hosts_count_the_same_rows(host: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if host == "spark":
        request.getfixturevalue("spark_session")
    add(tmp_path, "a", 1, *(f"{k},2024-01-01 00:00:{k:02d}" for k in (1, 5, 20, 3)), "x,")
    add(tmp_path, "b", 1, *(f"{k},2024-01-01 00:00:{k:02d}" for k in range(4)))
    net = mr.Network()
    net.sql(re.sub(r"path '", f"path '{tmp_path}/", SCRIPT))
    found = parse(net.run(on=host, until="end").wait().metrics_text())  # type: ignore[arg-type]
    streams = [
        (
            stream,
            *(value(found, f"millrace_rows_{name}_total", stream=stream) for name in ("in", "late", "quarantined")),
        )
        for stream in "ab"
    ]
    assert streams == [("a", 5, 1, 1), ("b", 4, 0, 0)]
    written = [line for path in (tmp_path / "out").glob("part-*") for line in path.read_text().splitlines()[1:]]
    assert value(found, "millrace_rows_out_total", query="both") == len(written) == 6
    held = [each for (name, _), each in found.items() if name == "millrace_rows_held"]
    assert held and set(held) == {0}
    parts = {dict(labels)["part"]: each for (name, labels), each in found.items() if "micro_batch" in name}
    assert (set(parts) >= {"read", "work", "save"} and min(parts.values()) > 0) if host == "spark" else not parts


def test_opentelemetry_is_told_the_last_counts(tmp_path: Path) -> None:
    """A receiver of the test's own takes what the command sends by OTLP."""
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    bodies: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    add(tmp_path, "a", 1, *(f"{k},2024-01-01 00:00:{k:02d}" for k in (1, 5, 20, 3)))
    add(tmp_path, "b", 1, "1,2024-01-01 00:00:01")
    (tmp_path / "both.sql").write_text(SCRIPT)
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }
        run = ["run", "both.sql", "--on", "local", "--until-end", "--opentelemetry"]
        ran = millrace_process(*run, folder=tmp_path, settings=settings)
        server.shutdown()
    assert ran.returncode == 0, ran.stderr
    sent = service.ExportMetricsServiceRequest.FromString(bodies[-1])
    (scope,) = sent.resource_metrics[0].scope_metrics
    rows = {
        point.attributes[0].value.string_value: point.as_int
        for metric in scope.metrics
        if metric.name == "millrace_rows_in"
        for point in metric.sum.data_points
    }
    assert rows == {"a": 4, "b": 1}
