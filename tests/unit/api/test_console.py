from __future__ import annotations

import datetime as dt
import io
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from millrace.api.console import Console, clock_text, progress_text, summary_data, summary_lines
from millrace.api.terminal import status_line
from millrace.hosts.report import Report
from millrace.kernel.elements import END_OF_TIME, NO_BOUND
from millrace.kernel.latency import Latency
from millrace.kernel.metrics import AsideRow, AsideRows, QueueMetrics, SourceMetrics
from tests.terminal import Terminal

REPORT = Report(
    sources={
        "link": SourceMetrics(received=10, late=2, quarantined=1, buffered=0, bound=NO_BOUND, greatest=0, enabled=3)
    },
    results={"q": 4},
    held=5,
    elapsed=2.0,
)


def test_the_summary_accounts_for_every_row() -> None:
    text = "\n".join(summary_lines(REPORT))
    for part in (
        "10 rows in 2.0 s (5/s)",
        "2 late",
        "1 quarantined",
        "3 ETS",
        "-> q: 4 results",
        "5 rows or partial results held",
    ):
        assert part in text


def test_the_summary_says_what_queues_did_with_updates() -> None:
    source = replace(REPORT.sources["link"], superseded=4, shed=1, buffered=1)
    queue = QueueMetrics("inplace", keys=20, waiting=1, superseded=4, shed=1, application_mean=2.5e6, queue_mean=1e6)
    report = replace(REPORT, sources={"link": source}, queues={"q": queue})
    text = "\n".join(summary_lines(report))
    assert "10 rows, 1 processed, 2 late, 1 quarantined, 4 superseded, 1 shed, 1 still buffered" in text
    assert "q: queue inplace, 1 row waits of 20 keys, 4 superseded, 1 shed, stale 2.5 s on average, 0 ms now" in text
    assert summary_data(report)["queues"]["q"]["policy"] == "inplace"


def test_a_run_that_finds_nothing_says_whether_there_ever_was_something() -> None:
    nothing = "nothing was found to read: check the paths of the streams"
    assert nothing in "\n".join(summary_lines(Report({}, {})))
    for again in (replace(REPORT, earlier=10), Report({}, {}, earlier=10)):
        text = "\n".join(summary_lines(again))
        assert text.startswith("0 rows in ") and ", after 10 in earlier runs" in text
        assert nothing not in text
        assert "nothing new was found to read" in text


def test_results_are_tab_separated_under_a_head() -> None:
    out = io.StringIO()
    console = Console(out=out, err=io.StringIO())
    times = pa.array([0, 1_500_000], pa.timestamp("us", tz="UTC"))
    console.results("q", pa.table({"ts": times, "n": [None, 2]}))
    assert out.getvalue() == "# q\nts\tn\n1970-01-01 00:00:00\tNULL\n1970-01-01 00:00:01.500000\t2\n"


def test_a_program_reads_an_object_a_line() -> None:
    out = io.StringIO()
    console = Console(as_json=True, out=out, err=io.StringIO())
    console.results("q", pa.table({"n": [1], "ts": pa.array([None], pa.timestamp("us", tz="UTC"))}))
    console.summary(REPORT)
    first, last = map(json.loads, out.getvalue().splitlines())
    assert first == {"query": "q", "n": 1, "ts": None}
    assert last["summary"]["sources"]["link"]["received"] == 10


def test_a_program_reads_decimals_days_lengths_of_time_and_bytes() -> None:
    out = io.StringIO()
    row = {"money": Decimal("1.10"), "day": dt.date(2026, 1, 2), "apart": dt.timedelta(minutes=7), "raw": b"\x00\xff"}
    Console(as_json=True, out=out, err=io.StringIO()).results("q", pa.Table.from_pylist([row]))
    assert out.getvalue() == (
        '{"query":"q","money":1.10,"day":"2026-01-02","apart":"INTERVAL \'0 00:07:00\' DAY TO SECOND","raw":"AP8="}\n'
    )


def test_times_are_shown_as_a_person_reads_them() -> None:
    assert [clock_text(each) for each in (NO_BOUND, END_OF_TIME, -1_000_000)] == ["-", "end", "1969-12-31 23:59:59"]


def test_the_summary_explains_rows_that_were_set_aside() -> None:
    aside = {"is odd": AsideRows(1_298, (AsideRow("1,\tx", "a.csv", 7), AsideRow("{}")))}
    source = replace(REPORT.sources["link"], aside=aside)
    lines = summary_lines(replace(REPORT, sources={"link": source}))
    assert lines[2:5] == ["    1,298 × is odd", "      a.csv, line 7: 1,\\tx", "      {}"]


def test_the_line_of_progress_has_room_for_the_streams_that_are_furthest_behind() -> None:
    sources = {f"stream_{at}": replace(REPORT.sources["link"], greatest=(20 - at) * 1_000_000) for at in range(20)}
    report = replace(REPORT, sources=sources)
    whole = progress_text(report, 5.0, None)
    assert all(name in whole for name in sources)
    for width in (60, 79, 199):
        text = progress_text(report, 5.0, width)
        assert len(text) <= width and text.startswith("200 rows  5/s  4 results")
    assert "stream_19 1970-01-01 00:00:01" in text and "stream_0 " not in text and text.endswith(" more")


def test_a_long_name_is_cut_where_the_line_of_progress_has_no_room_for_it() -> None:
    sources = {f"a_rather_long_name_of_a_stream_{at}": REPORT.sources["link"] for at in range(14)}
    report = replace(REPORT, sources=sources)
    text = progress_text(report, 5.0, 79)
    assert text == "140 rows  5/s  4 results  a_rather_long_name_… 1970-01-01 00:00:00  and 13 more"
    assert progress_text(report, 5.0, 50) == "140 rows  5/s  4 results  14 streams"


def test_a_summary_is_parted_at_its_commas_where_the_terminal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "terminal_width", lambda stream: 40)
    source = replace(REPORT.sources["link"], aside={"is odd": AsideRows(1, (AsideRow("x, " * 20),))})
    terminal = Terminal(200)
    Console(err=terminal).summary(replace(REPORT, sources={"link": source}))
    assert terminal.lines()[1:4] == [
        "  link: 10 rows, 7 processed, 2 late,",
        "    1 quarantined, 3 ETS,",
        "    up to 1970-01-01 00:00:00",
    ]
    assert terminal.lines()[5] == "      " + "x, " * 19 + "x,"


def test_every_figure_of_the_summary_is_plain_data() -> None:
    source = replace(REPORT.sources["link"], disorder=Latency())
    report = replace(REPORT, latency={"q": Latency()}, sources={"link": source})
    assert json.loads(json.dumps(summary_data(report)))["results"] == {"q": 4}
