"""One table: the Spark host beside stock Spark with both of its state stores, over all kinds of queries.

Rules:
- Stock Spark gets the settings that are best for the query: a trial over a part of the input finds them for each store.
- A system does a workload twice in a process of its own: all of it to warm up, and all of it measured.
- Ours is measured once before each peer, so that the sides alternate; of its figures the median counts.
- A system that dies, takes too long or gives a wrong answer is written down as that. Each result is written down as
  soon as there is one, so that a run that was broken off can be taken up.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.measures import result_log
from bench.measures.answers import WrongAnswers, answered
from bench.measures.spark_outcome import outcome
from bench.queries.workload import Work
from bench.systems.engines import Engine, PeerFailed, Task
from bench.systems.isolated_process import measured_alone
from bench.systems.stock_settings import ALWAYS, Variant
from bench.systems.stock_sweep import fastest, swept
from bench.workloads.cases import BATCH, CASES, FRAMES, OURS, Case

NAME = "spark_table"
_LISTS = ("seconds", "batch_seconds")
Line = Mapping[str, Any]
_HEADINGS = (
    "workload",
    "system",
    "settings",
    "rows/s, whole run",
    "rows/s, under way",
    "Spark host is faster by",
    "latency p50, ms",
    "p99, ms",
    "micro-batches until a result leaves",
    "results that left",
    "state a micro-batch",
    "peak memory",
)
TRIAL = "trial"
"""What the lines of trials have for a system."""


def run(rows: int, rounds: int, *, only: Sequence[str] = (), resume: bool = False, from_results: bool = False) -> None:
    """Measure what is asked for, writing each result down, and print the tables; or print what is written down."""
    if not from_results:
        around = result_log.circumstances()
        done = [line for line in written() if line["asked"] == rows] if resume else []
        if done:
            around["run"] = done[-1]["run"]
        around.setdefault("run", around["date"])
        for name in only or tuple(CASES):
            _Measurement(name, rows, around, done).take()
    lines = newest(written())
    print("\n".join([*table(lines), "", *trial_table(lines)]))


class _Measurement:
    """A workload on all systems, as far as there is no result yet."""

    def __init__(self, name: str, rows: int, around: Line, done: Sequence[Line]) -> None:
        self._name, self._rows, self._around = name, rows, around
        self._case = CASES[name]
        self._lines = [line for line in done if (line["run"], line["workload"]) == (around["run"], name)]
        self._made: Work | None = None

    def take(self) -> None:
        """Measure the systems, and write each result down."""
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
            chosen = self._chosen(Path(folder) / TRIAL)
            for place, (system, engine) in enumerate(self._order(chosen)):
                if not any(line.get("place") == place for line in self._lines):
                    settings = chosen[system].label(join=self._case.joins) if system in chosen else ""
                    self._write(
                        {
                            "system": system,
                            "place": place,
                            "settings": settings,
                            **self._measured(system, engine, folder),
                        }
                    )
                    shutil.rmtree(Path(folder) / system, ignore_errors=True)

    def _chosen(self, folder: Path) -> dict[str, Variant]:
        """By system, the settings that stock Spark is measured with."""
        case = self._case
        if case.live:
            return {each.system: each for each in case.variants}
        if case.variants and not any(line["system"] == TRIAL for line in self._lines):
            for line in swept(case.make(folder / "in", int(self._rows * case.trial)), case.variants, folder):
                self._write({"system": TRIAL, **line})
            shutil.rmtree(folder)
        trials = [line for line in self._lines if line["system"] == TRIAL]
        return {each.system: each for each in (fastest(trials, store) for store in case.stores)}

    def _order(self, chosen: Mapping[str, Variant]) -> Iterator[tuple[str, Engine]]:
        """What is measured, one after the other: ours before each peer, of what is fed at its pace before the first."""
        if not chosen:
            yield from self._case.ours.items()
        for number, (system, variant) in enumerate(chosen.items()):
            if not (self._case.live and number):
                yield from self._case.ours.items()
            yield system, partial(self._case.stock, settings={**ALWAYS, **variant.settings()})

    def _measured(self, system: str, engine: Engine, folder: str) -> dict[str, Any]:
        """One system's figures, or why there are none."""
        case, workload = self._case, self._workload(Path(folder))
        task = Task(workload, Path(folder), rounds=1, files_per_batch=None if case.live else 1, warm=case.warm)
        try:
            found = measured_alone(engine, task, system, itself="stock" not in system)
            answers = answered(workload, task.output(system, 1), system)
            if answers.found < answers.true and not case.live:
                raise WrongAnswers(f"{answers.true - answers.found:,} results are missing")
        except (PeerFailed, WrongAnswers) as error:
            return {"rows": workload.rows, "failed": str(error)}
        entry: dict[str, Any] = {
            "rows": workload.rows,
            "seconds": [round(each, 3) for each in found.measured.seconds],
            "results": answers.found,
            "expected": answers.true,
            "peak_bytes": found.peak,
        }
        if system != BATCH:
            left = outcome(task, system)
            entry |= {
                "input_batches": task.batches,
                "batches": left.batches,
                "batch_seconds": [round(each, 3) for each in found.measured.batch_seconds],
                "waited": left.waited,
                "latency_ms": left.latency,
                "state_bytes": left.state_bytes,
            }
        return entry

    def _workload(self, folder: Path) -> Work:
        """The input, made when it is first needed; of a live run for each system."""
        if self._made is None or self._case.live:
            self._made = self._case.make(folder / "in" / str(len(self._lines)), self._rows)
        return self._made

    def _write(self, line: dict[str, Any]) -> None:
        line = {"workload": self._name, "asked": self._rows, **line}
        result_log.append(NAME, self._around, [line])
        self._lines.append(line)
        print(f"{self._case.title}; {line['system']}: {_told(line, self._case)}", flush=True)


# What is written down


def written() -> list[Line]:
    """All results so far."""
    path = result_log.results(NAME)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def newest(lines: Sequence[Line]) -> list[Line]:
    """The results of the last run of each workload."""
    last = {line["workload"]: line["run"] for line in lines}
    return [line for line in lines if line["workload"] in CASES and line["run"] == last[line["workload"]]]


def merged(lines: Sequence[Line]) -> list[Line]:
    """One line per workload and system, in the table's order: of several figures all, or the median."""
    found: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line["system"] != TRIAL:
            found.setdefault((line["workload"], line["system"]), []).append(line)
    order = {name: [*case.ours, *(f"stock Spark, {store}" for store in case.stores)] for name, case in CASES.items()}
    return [_merged(found[name, each]) for name in order for each in order[name] if (name, each) in found]


def _merged(lines: Sequence[Line]) -> Line:
    whole = [line for line in lines if "failed" not in line]
    if not whole:
        return lines[-1]
    both = {name: [each for line in whole for each in line[name]] for name in _LISTS if name in whole[0]}
    if all(line.get("latency_ms") for line in whole):
        both["latency_ms"] = [median(each) for each in zip(*(line["latency_ms"] for line in whole), strict=True)]
    return {**whole[-1], **both}


# The table


def table(lines: Sequence[Line]) -> Iterator[str]:
    """Lines of markdown.

    >>> around = {"date": "2026-01-01", "commit": "abc", "cores": 2, "load": 0.1, "workload": "sliding", "rows": 100}
    >>> figures = {"results": 7, "expected": 7, "waited": [0.0, 0], "state_bytes": 2_000_000, "peak_bytes": 10**9}
    >>> ours = {**around, **figures, "system": OURS, "seconds": [1.0], "batch_seconds": [0.2], "input_batches": 2}
    >>> peer = {**around, "system": "stock Spark, RocksDB", "failed": "did not end within 300 s"}
    >>> for line in list(table([{**ours, "latency_ms": [2.0, 3.0]}, peer]))[2:4]:
    ...     print(line)
    | sliding count, 60 s by 1 s | Spark host |  | 100 | 250 |  | 2 | 3 | 0 | 7 | 2.0 MB | 1.0 GB |
    |  | stock Spark, RocksDB |  | did not end within 300 s |  |  |  |  |  |  |  |  |
    """
    lines = merged(lines)
    yield f"| {' | '.join(_HEADINGS)} |"
    yield f"|{'---|' * 3}{'---:|' * (len(_HEADINGS) - 3)}"
    ours = {(line["workload"], line["system"]): line for line in lines if line["system"] in (OURS, FRAMES)}
    before = None
    for line in lines:
        name = line["workload"]
        title = CASES[name].title if name != before else ""
        yield f"| {' | '.join([title, line['system'], line.get('settings', ''), *_cells(line, ours)])} |"
        if CASES[name].remark and line["system"] == OURS:
            yield f"|  | stock Spark |  | {CASES[name].remark} |{'  |' * (len(_HEADINGS) - 4)}"
        before = name
    yield ""
    for run in dict.fromkeys(f"{line['date'][:10]}, {line['commit']}" for line in lines):
        yield f"Measured {run}, on {lines[0]['cores']} cores."


def trial_table(lines: Sequence[Line]) -> Iterator[str]:
    """The settings that stock Spark was tried with, as lines of markdown."""
    yield "| workload | store | settings | seconds of a trial |"
    yield "|---|---|---|---:|"
    for line in lines:
        if line["system"] == TRIAL:
            case, variant = CASES[line["workload"]], Variant(**line["variant"])
            cells = [case.title, variant.store, variant.label(join=case.joins), f"{line['seconds']:.1f}"]
            yield f"| {' | '.join(cells)} |"


def _cells(line: Line, ours: Mapping[tuple[str, str], Line]) -> list[str]:
    if "failed" in line:
        return [line["failed"], *[""] * (len(_HEADINGS) - 4)]
    return [
        _thousands(whole(line)),
        _thousands(under_way(line)),
        _ratios(line, ours) if line["system"].startswith("stock") else "",
        *(_thousands(each) for each in line.get("latency_ms") or (None, None)),
        _waits(line),
        f"{line['results']:,}" + (f" of {line['expected']:,}" if line["results"] < line["expected"] else ""),
        f"{line['state_bytes'] / 1e6:,.1f} MB" if "state_bytes" in line else "",
        f"{line['peak_bytes'] / 1e9:,.1f} GB",
    ]


def whole(line: Line) -> float | None:
    """Rows per second from the start of the query to its end; None for a live run, which is fed at its pace."""
    return float(line["rows"] / median(line["seconds"])) if line.get("seconds") else None


def under_way(line: Line) -> float | None:
    """Rows per second of the median micro-batch that has none of the start in it."""
    if not line.get("batch_seconds"):
        return None
    return float(line["rows"] / line["input_batches"] / median(line["batch_seconds"]))


def _ratios(peer: Line, ours: Mapping[tuple[str, str], Line]) -> str:
    found = [ours.get((peer["workload"], system)) for system in (OURS, FRAMES)]
    texts = [_faster(line, peer) for line in found if line is not None and "failed" not in line]
    return "; DataFrames ".join(texts)


def _faster(ours: Line, peer: Line) -> str:
    pairs = [(whole(ours), whole(peer)), (under_way(ours), under_way(peer))]
    ratios = [f"{own / other:.1f} x" for own, other in pairs if own is not None and other is not None]
    return ", ".join(ratios)


def _waits(line: Line) -> str:
    if line.get("waited") is None:
        return "" if line["system"] == BATCH else "-"
    middle, most = line["waited"]
    return f"{middle:.0f}" if middle == most else f"{middle:.0f}, at most {most}"


def _thousands(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _told(line: Line, case: Case) -> str:
    if "failed" in line:
        return str(line["failed"])
    if line["system"] == TRIAL:
        variant = Variant(**line["variant"])
        return f"{variant.store}, {variant.label(join=case.joins)}: {line['seconds']:.1f} s"
    speeds = [f"{_thousands(speed)} rows/s" for speed in (whole(line), under_way(line)) if speed is not None]
    return f"{', '.join(speeds) or 'live'}; {line['results']:,} of {line['expected']:,} results, all true"
