"""The same links in virtual time: no Java, no waiting, and the same figures on every machine.

Stock Spark has no virtual time. What it does with a silent link is shown by the same query without enabling timestamps:
the time of the union waits for the silent link, as a watermark does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.experiments.demo.links import SECOND, Feed, LinkFile, link_files, link_rows, true_counts
from millrace.experiments.demo.side_by_side import ON_DEMAND, select
from millrace.experiments.demo.timeline import SeenWindow, SystemOutput, Timeline, seen_text
from millrace.hosts.run_options import RunOptions
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.elements import TIMESTAMP
from millrace.language import parse_network

START = 1_767_225_600
"""Event time begins with the year 2026, in seconds since the epoch."""
GRACE = 8
"""Seconds after the last row in which windows may still come out, as in the demonstration on Spark."""
WITHOUT = "without ETS"
_CLOCK = """CREATE STREAM clock (ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable REPLAY BY ts;
CREATE QUERY clock_rows AS SELECT ts FROM clock;"""
"""A row that arrives when all is over: virtual time ends with the last arrival."""


def virtual_timeline(feed: Feed) -> Timeline:
    """When each window comes out with enabling timestamps and without, in virtual time."""
    files = link_files(feed)
    sides = (_output("Millrace", ON_DEMAND, feed, files), _output(WITHOUT, "ETS NONE", feed, files))
    return Timeline(feed.window, true_counts(files, feed.window), feed.silence, *sides, clock="in virtual time")


def story(timeline: Timeline) -> list[str]:
    """What happened, in the order in which it happened."""
    begin, end = timeline.silence
    events = [(begin, f"{begin:5.1f} s  -- the control link falls silent"), (end, f"{end:5.1f} s  -- it sends again")]
    for side in (timeline.ours, timeline.theirs):
        for number, rows in side.windows.items():
            events += [(row.at, seen_text(side, number, row, timeline.window)) for row in rows]
    return [text for _, text in sorted(events, key=lambda event: event[0])]


def _output(name: str, ets: str, feed: Feed, files: Sequence[LinkFile]) -> SystemOutput:
    """The windows that come out of the query with this kind of ETS."""
    streams = [
        f"CREATE STREAM {link.name} (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP, arrived TIMESTAMP)"
        f" TIMESTAMP BY ts ORDERED {ets} FROM iterable REPLAY BY arrived;"
        for link in feed.links
    ]
    network = parse_network("\n".join([*streams, _CLOCK, f"CREATE QUERY counts AS {select(feed)};"]))
    over = max(file.due for file in files) + GRACE
    clock = pa.table({"ts": pa.array([int((START + over) * SECOND)]).cast(TIMESTAMP)})
    feeds = {"clock": [clock], **{link.name: [_arriving(link.name, files)] for link in feed.links}}
    run = VirtualRun(network, RunOptions("virtual", "available"), feeds=feeds, tick=SECOND // 10)
    run.run()
    output = SystemOutput(name)
    for delivered in run.deliveries:
        if delivered.query == "counts":
            _add(output, delivered.rows, delivered.now / SECOND - START, feed.window)
    return output


def _add(output: SystemOutput, rows: pa.Table, at: float, window: int) -> None:
    starts = rows.column("window_start").cast(pa.int64()).to_pylist()
    for start, count in zip(starts, rows.column("n").to_pylist(), strict=True):
        output.add((start // SECOND - START) // window, SeenWindow(count, at))


def _arriving(link: str, files: Sequence[LinkFile]) -> pa.Table:
    """All rows of a link, each with the time at which its file is due."""
    found = [file for file in files if file.link.name == link]
    times = np.concatenate([file.offsets for file in found]) + START * SECOND
    due = np.repeat([int((START + file.due) * SECOND) for file in found], [len(file.offsets) for file in found])
    return link_rows(times).append_column("arrived", pa.array(due).cast(TIMESTAMP))
