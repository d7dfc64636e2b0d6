"""One table: the Spark host beside stock Spark with both of its state stores, over all kinds of queries.

Each system does each workload once, after a short warm-up, in a process of its own. A system that dies, takes too long
or gives a wrong answer is written down as that. Each result is written down as soon as there is one, so that a run that
was broken off can be taken up. Aims: at least 1.5 times as fast as stock Spark on tumbling counts, 3 times from files;
10 times on sliding ones; 6 and 20 times on band joins; results a micro-batch earlier or more.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.measures import result_log
from bench.measures.answers import WrongAnswers, answered
from bench.measures.spark_outcome import outcome
from bench.queries.workload import Work
from bench.systems.engines import PeerFailed, Task
from bench.systems.isolated_process import measured_alone
from bench.workloads.cases import BATCH, CASES, OURS, Case

NAME = "spark_table"
Line = Mapping[str, Any]
_HEADINGS = (
    "workload",
    "system",
    "rows/s, whole run",
    "rows/s, under way",
    "Spark host is faster by",
    "micro-batches until a result leaves",
    "results that left",
    "state a micro-batch",
    "peak memory",
)


def run(rows: int, rounds: int, *, only: Sequence[str] = (), resume: bool = False, from_results: bool = False) -> None:
    """Measure what is asked for, writing each result down, and print the table; or print what is written down."""
    names = only or tuple(CASES)
    if not from_results:
        around = result_log.circumstances()
        done = [line for line in written() if line["asked"] == rows] if resume else []
        if done:
            around["run"] = done[-1]["run"]
        around.setdefault("run", around["date"])
        for name in names:
            known = {line["system"] for line in done if (line["run"], line["workload"]) == (around["run"], name)}
            _measure_case(name, rows, around, known)
    print("\n".join(table(newest(written()))))


def _measure_case(name: str, rows: int, around: Line, known: set[str]) -> None:
    """Measure the systems that have no result yet."""
    case, workload = CASES[name], None
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
        for system in case.engines:
            if system not in known:
                if workload is None or case.live:
                    workload = case.make(Path(folder) / "in" / (system if case.live else "all"), rows)
                line = {"workload": name, "system": system, "asked": rows, **_measured(case, system, workload, folder)}
                result_log.append(NAME, around, [line])
                print(f"{case.title}; {system}: {_told(line)}", flush=True)
                shutil.rmtree(Path(folder) / system, ignore_errors=True)


def _measured(case: Case, system: str, workload: Work, folder: str) -> dict[str, Any]:
    """One system's figures, or why there are none."""
    task = Task(workload, Path(folder), rounds=1, files_per_batch=None if case.live else 1, warm=case.warm)
    try:
        found = measured_alone(case.engines[system], task, system, itself="stock" not in system)
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
            "state_bytes": left.state_bytes,
        }
    return entry


# What is written down


def written() -> list[Line]:
    """All results so far."""
    path = result_log.results(NAME)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def newest(lines: Sequence[Line]) -> list[Line]:
    """The results of the last run of each workload, in the table's order; of two of one system the later."""
    last = {line["workload"]: line["run"] for line in lines}
    found = {(line["workload"], line["system"]): line for line in lines if line["run"] == last[line["workload"]]}
    return [found[name, system] for name, case in CASES.items() for system in case.engines if (name, system) in found]


# The table


def table(lines: Sequence[Line]) -> Iterator[str]:
    """Lines of markdown.

    >>> around = {"date": "2026-01-01", "commit": "abc", "cores": 2, "load": 0.1, "workload": "sliding", "rows": 100}
    >>> figures = {"results": 7, "expected": 7, "waited": [0.0, 0], "state_bytes": 2_000_000, "peak_bytes": 10**9}
    >>> ours = {**around, **figures, "system": OURS, "seconds": [1.0], "batch_seconds": [0.2], "input_batches": 2}
    >>> peer = {**around, "system": "stock Spark, RocksDB", "failed": "did not end within 240 s"}
    >>> for line in list(table([ours, peer]))[2:4]:
    ...     print(line)
    | sliding count, 60 s by 1 s | Spark host | 100 | 250 |  | 0 | 7 | 2.0 MB | 1.0 GB |
    |  | stock Spark, RocksDB | did not end within 240 s |  |  |  |  |  |  |
    """
    yield f"| {' | '.join(_HEADINGS)} |"
    yield f"|{'---|' * 2}{'---:|' * (len(_HEADINGS) - 2)}"
    ours: dict[str, Line] = {line["workload"]: line for line in lines if line["system"] == OURS}
    before = None
    for line in lines:
        name = line["workload"]
        title = CASES[name].title if name != before else ""
        yield f"| {' | '.join([title, line['system'], *_cells(line, ours.get(name))])} |"
        if CASES[name].remark and line["system"] == OURS:
            yield f"|  | stock Spark | {CASES[name].remark} |{'  |' * (len(_HEADINGS) - 3)}"
        before = name
    yield ""
    for run in dict.fromkeys(f"{line['date'][:10]}, {line['commit']}" for line in lines):
        yield f"Measured {run}, on {lines[0]['cores']} cores."


def _cells(line: Line, ours: Line | None) -> list[str]:
    if "failed" in line:
        return [line["failed"], *[""] * (len(_HEADINGS) - 3)]
    return [
        _thousands(whole(line)),
        _thousands(under_way(line)),
        "" if ours is None or line["system"] in (OURS, BATCH) else _faster(ours, line),
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


def _told(line: Line) -> str:
    if "failed" in line:
        return str(line["failed"])
    speeds = [f"{_thousands(speed)} rows/s" for speed in (whole(line), under_way(line)) if speed is not None]
    return f"{', '.join(speeds) or 'live'}; {line['results']:,} of {line['expected']:,} results, all true"
