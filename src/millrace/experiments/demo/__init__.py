"""The demonstration: Q1 of paper 004 over a link that falls silent, on Millrace and on stock Spark side by side.

Both systems run at the same time, each in a Spark of its own, and read the same files at the same moments. Event time
runs at the speed of the wall clock, and a window is timed when its row can be read from the system's sink.

- `links`: the generated rows of each link, their true counts, and the feeder that moves files into place
- `side_by_side`: starts, warms up, feeds, watches and stops both systems
- `sink_watcher`: sees what stock Spark's file sink has committed
- `virtual_time`: the same links in virtual time, without Spark
- `timeline`: when each window came out, as a table, a picture and a verdict

Goes out: timeline.txt and, with matplotlib, timeline.svg. The command line imports this package, and `bench` its links
and watcher.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from millrace.api.terminal.status_line import folded
from millrace.experiments.demo.links import Feed
from millrace.experiments.demo.side_by_side import SideBySide, select
from millrace.experiments.demo.timeline import Timeline
from millrace.experiments.demo.virtual_time import WITHOUT, story, virtual_timeline
from millrace.experiments.drawing import HOW_TO_DRAW, can_draw

SECONDS = 45.0
"""How long the links are fed."""


def demo(output: Path, seconds: float = SECONDS, out: TextIO | None = None) -> int:
    """Run the demonstration and write its picture to the folder; 0 if every count of ours is the true one."""
    out = out or sys.stdout
    folder = Path(tempfile.mkdtemp(prefix="millrace-demo-"))
    both = SideBySide(Feed(seconds), folder, out)
    try:
        timeline = both.run()
    finally:
        both.close()
        shutil.rmtree(folder, ignore_errors=True)
    return _shown(timeline, both.remarks(), output, out)


def virtual_demo(output: Path, seconds: float = SECONDS, out: TextIO | None = None) -> int:
    """Run the demonstration in virtual time, without Spark; else as `demo`."""
    out, feed = out or sys.stdout, Feed(seconds)
    out.write(f"Q1: {select(feed)}\n")
    out.write(
        f"{seconds:.0f} s of three links in virtual time, without Spark: seconds below are not those of a clock\n\n"
    )
    out.flush()
    timeline = virtual_timeline(feed)
    out.write("\n".join(story(timeline)) + "\n")
    remark = (
        f'("{WITHOUT}" is the same query with ETS NONE: it waits for the silent link, as a watermark does; '
        "millrace demo runs stock Spark itself, in about two minutes)"
    )
    return _shown(timeline, [remark], output, out)


def _shown(timeline: Timeline, remarks: list[str], output: Path, out: TextIO) -> int:
    """Show and write the table, the verdict and the picture."""
    lines = ["", *timeline.table(), "", *timeline.verdict(), *remarks]
    out.write("\n".join(folded(lines, out)) + "\n")
    out.flush()
    output.mkdir(parents=True, exist_ok=True)
    (output / "timeline.txt").write_text("\n".join(lines[1:]) + "\n")
    if can_draw():
        (output / "timeline.svg").write_text(timeline.picture())
    picture = str(output / "timeline.svg") if can_draw() else f"none; {HOW_TO_DRAW}"
    out.write(f"picture: {picture}\n")
    return 1 if timeline.wrong(timeline.ours) or timeline.missing(timeline.ours) else 0
