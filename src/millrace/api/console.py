"""What a run shows on a terminal: a progress line, results, and a summary."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, TextIO

import pyarrow as pa

from millrace.api.terminal.colours import Colours
from millrace.api.terminal.phase_line import PhaseLine
from millrace.api.terminal.result_table import ResultTables
from millrace.api.terminal.status_line import StatusLine, fitted, folded, say, terminal_width
from millrace.connectors.files.file_writer import JSON, json_lines
from millrace.connectors.files.times.timestamps import text_of
from millrace.errors import output_fault
from millrace.hosts.control.replies import Reply
from millrace.hosts.report import Report
from millrace.hosts.why.verdicts import length_text
from millrace.kernel.metrics import AsideRow, QueueMetrics, SourceMetrics
from millrace.plan.evolution.changes import Shown
from millrace.plan.evolution.evolution import Evolution
from millrace.plan.explain.time_text import clock_text
from millrace.plan.nodes.query_network import Query, QueryNetwork

_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})
"""Characters that would break a line or a column of the output."""
_SUMMARY = (
    *("sources", "results", "held", "state_bytes", "elapsed", "steps", "earlier", "turned_away", "profile", "queues"),
    *("joins", "aggregates", "malformed", "in_vain"),
)
"""What of a report a summary has."""
_SHORT_NAME = 6
"""As much of a stream's name as tells it from others."""
_NOTHING = "  nothing was found to read: check the paths of the streams"


class Limits:
    """How many more rows of each query are shown, where its sink has a limit; calls `stop` when none is left anywhere.

    >>> from millrace.plan.nodes.endpoints import Connector, Sink
    >>> query = Query("q", None, Sink("q", Connector("console", {"limit": "3"})))
    >>> limits = Limits(lambda: [query], lambda: print("stop"))
    >>> limits.within(query, pa.table({"n": [1, 2]})).num_rows
    2
    >>> limits.within(query, pa.table({"n": [3, 4]})).num_rows
    stop
    1
    """

    def __init__(self, queries: Callable[[], Iterable[Query]], stop: Callable[[], object]) -> None:
        self._queries, self._stop = queries, stop
        self._left: dict[str, int] = {}

    def within(self, query: Query, rows: pa.Table) -> pa.Table:
        """The rows that are still to be shown."""
        limit = query.sink.connector.options.get("limit")
        if limit is None:
            return rows
        left = self._left.get(query.name, int(limit))
        self._left[query.name] = max(0, left - rows.num_rows)
        if left and all(self._left.get(each.name) == 0 for each in self._queries()):
            self._stop()
        return rows.slice(0, left)


class Console:
    """Shows one run on a terminal, or to a program that reads JSON."""

    def __init__(self, *, as_json: bool = False, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self._headed = ""
        self._last: tuple[float, int] | None = None
        self._status = StatusLine(self.err)
        self._tables = ResultTables(Colours(self.out)) if self.out.isatty() else None
        self._waiting: PhaseLine | None = None

    def phase(self, text: str) -> None:
        """Show what the run waits for, until it has something else to show."""
        if self.as_json or (self._waiting is not None and self._waiting.text == text):
            return
        self.clear()
        self._waiting = PhaseLine(text, self.err)

    def clear(self) -> None:
        """Remove the line that shows what the run does."""
        self._end_wait()
        self._status.clear()

    def _end_wait(self) -> None:
        if self._waiting is not None:
            self._waiting.end()
            self._waiting = None

    def progress(self, report: Report) -> None:
        """Show rows, rate, the greatest time of each stream, and results so far."""
        self._end_wait()
        rate = self._rate(report)
        if self._status.due:
            self._status.show(progress_text(report, rate, terminal_width(self.err) - 1 if self._status.live else None))

    def _rate(self, report: Report) -> float:
        before = self._last or (0.0, report.earlier)
        self._last = (report.elapsed, report.received)
        return max(0, report.received - before[1]) / max(report.elapsed - before[0], 1e-6)

    def results(self, query: str, rows: pa.Table) -> None:
        """Show result rows of a query: as a table on a terminal, else tab-separated, or one JSON object per line."""
        if not rows.num_rows and self._headed == query:
            return
        self.clear()
        if self.as_json:
            self._show(*json_lines(rows.add_column(0, "query", pa.repeat(query, rows.num_rows))))
            return
        texts = [column_text(column) for column in rows.columns]
        if self._tables is not None:
            self._headed = query
            self._show(*self._tables.lines(query, rows, texts, terminal_width(self.out)))
            return
        head = () if self._headed == query else (f"# {query}", "\t".join(rows.column_names))
        self._headed = query
        self._show(*head, *("\t".join(row) for row in zip(*texts, strict=True)))

    def shown(self, answers: Iterable[Shown]) -> None:
        """Show the answers to SHOW, DESCRIBE and EXPLAIN."""
        for each in answers:
            if each.title == "EXPLAIN" and not self.as_json:
                self._show(*each.rows.column("plan").to_pylist())
            else:
                self.results(each.title, each.rows)

    def _show(self, *lines: str) -> None:
        """Write lines to standard output."""
        try:
            self.out.writelines(f"{line}\n" for line in lines)
            self.out.flush()
        except OSError as error:
            raise output_fault(error) from error

    def started(self, network: QueryNetwork, **fields: Any) -> None:
        """Nothing: the lines of progress say that a run has begun."""

    def serving(self, url: str, page: str) -> None:
        """Say where the run answers over HTTP, and by which address its page can change queries."""
        say(self.err, f"serving on {url}\nthe live page: {page}\n")

    def stopping(self, live: bool) -> str:
        """The line that says that a run is being stopped, on a terminal if it is live; a signal's handler writes it."""
        return "\r\x1b[Kstopping ...\n" if live else "stopping ...\n"

    def warning(self, text: str) -> None:
        """Say what is wrong and stops nothing."""
        say(self.err, f"warning: {text}\n")

    def changed(self, request: str, replies: Sequence[Reply]) -> None:
        """Nothing: the asker of a change gets the answer."""

    def evolution(self, evolution: Evolution | None, *, would: bool = False) -> None:
        """Show what becomes of the queries of a checkpoint; with `would`, for a dry run, on standard output."""
        self.clear()
        if self.as_json:
            found = None if evolution is None else evolution.data()
            self._show(json.dumps({"evolution": found}))
            return
        lines = ["nothing would change"] if evolution is None else evolution.lines()
        if would:
            self._show(*lines)
        else:
            say(self.err, "\n".join(lines) + "\n")

    def summary(self, report: Report) -> None:
        """Show what became of the rows of each stream, and the results."""
        self.clear()
        if self.as_json:
            self._show(json.dumps({"summary": summary_data(report)}))
            return
        lines = summary_lines(report)
        if report.profile is not None:
            # Imported here: the other hosts do not need Spark.
            from millrace.hosts.spark.batch_times import profile_lines

            lines += profile_lines(report.profile)
        # What stands deeper is the text of a row.
        lines = [part for line in lines for part in ([line] if line.startswith("   ") else folded([line], self.err))]
        colours = Colours(self.err)
        say(self.err, "\n".join(map(colours.summary, lines)) + "\n")


def progress_text(report: Report, rate: float, width: int | None) -> str:
    """Rows, rate, results, and how far the streams are: those furthest behind first, as many as fit a width."""
    waiting = f"  {sum(queue.waiting for queue in report.queues.values()):,} in queues" if report.queues else ""
    text = f"{report.received:,} rows  {rate:,.0f}/s  {sum(report.results.values()):,} results{waiting}"
    behind = sorted(report.sources.items(), key=lambda each: each[1].greatest)
    for place, (name, source) in enumerate(behind):
        time, left = clock_text(source.greatest, unit=source.unit), len(behind) - place
        more = f"  and {left - 1} more" if left > 1 else ""
        room = len(name) if width is None else width - len(f"{text}   {time}{more}")
        if room < len(name) and (place or room < _SHORT_NAME):
            return text + (f"  and {left} more" if place else f"  {left} stream{'s' if left > 1 else ''}")
        text += f"  {fitted(name, room)} {time}"
    return text


def summary_lines(report: Report) -> list[str]:
    """The summary as text."""
    seconds = max(report.elapsed, 1e-9)
    rows = max(report.received - report.earlier, 0)
    before = f", after {report.earlier:,} in earlier runs" if report.earlier else ""
    lines = [f"{rows:,} rows in {seconds:.1f} s ({rows / seconds:,.0f}/s){before}"]
    if not rows:
        lines.append("  nothing new was found to read" if report.earlier else _NOTHING)
    for name, source in report.sources.items():
        wrong = [f"{count:,} {word}" for count, word in _elsewhere(source) if count]
        wrong = [f"{source.processed:,} processed", *wrong] if wrong else []
        spoken = [f"{source.enabled} ETS"] if source.enabled else []
        reached = clock_text(source.greatest, unit=source.unit)
        notes = ", ".join([f"{source.received:,} rows", *wrong, *spoken, f"up to {reached}"])
        lines.append(f"  {name}: {notes}")
        lines += _aside_lines(source)
    lines += [f"  -> {name}: {rows:,} results" for name, rows in report.results.items()]
    lines += [f"  {name}: {queue_text(queue)}" for name, queue in report.queues.items()]
    lines += [f"  {name}: {count:,} malformed in from_json" for name, count in report.malformed.items()]
    if report.in_vain:
        lines.append(
            f"  warning: {report.in_vain:,} rows of as-of joins met nothing so far: are the times of the other stream "
            "later than theirs?"
        )
    if report.turned_away:
        lines.append(f"  {report.turned_away:,} rows refused by roll-up or slack: too late for a query")
    if report.held:
        lines.append(
            f"  {report.held:,} rows or partial results held in open windows ({report.state_bytes / 1024:,.0f} KiB)"
        )
    return lines


def _aside_lines(source: SourceMetrics) -> list[str]:
    """Why rows of a stream were quarantined, and examples with their places."""
    lines = []
    for reason, rows in source.aside.items():
        lines.append(f"    {rows.count:,} × {reason}")
        lines += [f"      {_place(row)}{str(row.raw).translate(_ESCAPES)}" for row in rows.examples]
    return lines


def _place(row: AsideRow) -> str:
    """Where a row stands, before its text."""
    return "" if row.file is None else f"{row.file}, line {row.line}: "


def _elsewhere(source: SourceMetrics) -> tuple[tuple[int, str], ...]:
    """The counts of a stream's rows that were not processed, and what became of them."""
    return (
        (source.late, "late"),
        (source.quarantined, "quarantined"),
        (source.superseded, "superseded"),
        (source.shed, "shed"),
        (source.buffered, "still buffered"),
    )


def queue_text(queue: QueueMetrics) -> str:
    """The state of a queue in one line.

    >>> queue_text(QueueMetrics("inplace", keys=100, waiting=7, superseded=1200, queue_mean=5e5, queue_now=9e5))
    'queue inplace, 7 rows wait of 100 keys, 1,200 superseded, stale 500 ms on average, 900 ms now'
    """
    rows = "row waits" if queue.waiting == 1 else "rows wait"
    policy = queue.policy if queue.mode in ("", queue.policy) else f"{queue.policy} (now {queue.mode})"
    words = [f"queue {policy}", f"{queue.waiting:,} {rows} of {queue.keys:,} keys"]
    words += [f"{count:,} {word}" for count, word in ((queue.superseded, "superseded"), (queue.shed, "shed")) if count]
    mean = max(queue.application_mean, queue.queue_mean)
    now = max(queue.application_now, queue.queue_now)
    return ", ".join([*words, f"stale {length_text(int(mean))} on average", f"{length_text(int(now))} now"])


def summary_data(report: Report) -> dict[str, Any]:
    """The summary as plain data; what else a report has is for /metrics and the page."""
    data: dict[str, Any] = {name: _plain(getattr(report, name)) for name in _SUMMARY}
    for name, source in data["sources"].items():
        source["processed"] = report.sources[name].processed
        unit = source.pop("unit")
        for each in ("moved_at", "seen_at", "disorder"):
            del source[each]
        source.update({each: clock_text(source[each], unit=unit) for each in ("bound", "greatest")})
    return data


def _plain(value: Any) -> Any:
    """Records, and mappings of records, as dictionaries."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def column_text(column: pa.ChunkedArray) -> list[str]:
    """A column's values as text, nested ones as JSON.

    >>> column_text(pa.chunked_array([[["a"], None]]))
    ['["a"]', 'NULL']
    """
    if pa.types.is_nested(column.type):
        column = JSON.of(column.combine_chunks())
    elif pa.types.is_timestamp(column.type):
        column = text_of(column)
    else:
        return ["NULL" if value is None else str(value).translate(_ESCAPES) for value in column.to_pylist()]
    return ["NULL" if text is None else text for text in column.to_pylist()]
