"""A network, what arrives, and what happens to its runs: all that a simulation needs, as plain data.

`played` starts one run after the other on one checkpoint, each until its fault strikes, then one to the end of the
input, or none, and one that closes everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pyarrow as pa

from millrace.errors import MillraceError
from millrace.hosts.report import Ending
from millrace.hosts.run_options import RunOptions
from millrace.kernel.elements import Microseconds
from millrace.kernel.metrics import SourceMetrics
from millrace.language import bind_changes, read_file
from millrace.plan.evolution.changes import Added, Amendment, NetworkFile
from millrace.plan.nodes.endpoints import Connector, Sink
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.testing.simulated_files import PowerCut, using
from millrace.testing.simulation.arriving_input import Arrivals, arrivals_of, earliest
from millrace.testing.simulation.checked_run import BrokenPromise, CheckedRun, ScriptedChanges
from millrace.testing.simulation.result_store import RESULT_STORE, forget, results_of
from millrace.testing.simulation.run_faults import Damage, Fate, RunFault
from millrace.testing.simulation.simulated_clock import SimulatedClock

Row = dict[str, Any]


@dataclass(frozen=True)
class Life:
    """One run: what is asked of it, by the number of its turn, and how it ends before its input does."""

    fault: RunFault | None = None
    events: tuple[tuple[int, str | Microseconds], ...] = ()
    """Requests, and jumps of the clock in microseconds."""
    text: str | None = None
    """The file that it is started with; None: that of the run before."""


@dataclass(frozen=True)
class TimedRows:
    """The rows of a stream in order of arrival, and when each arrives."""

    rows: pa.Table
    times: tuple[Microseconds, ...]


@dataclass(frozen=True)
class Scenario:
    """Everything that happens, but for what chance decides by the seed: the order of steps and the size of batches."""

    seed: int
    text: str
    inputs: Mapping[str, TimedRows]
    lives: tuple[Life, ...] = ()
    commit_interval: Microseconds = 1_000_000
    rows_per_step: int | None = None


@dataclass
class Outcome:
    """What came of a scenario."""

    results: dict[str, list[Row]] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    """Every query that ever ran, with its start."""
    dropped: set[str] = field(default_factory=set)
    sources: Mapping[str, SourceMetrics] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    """How often each fault struck, and what else came about."""


def scenario_text(scenario: Scenario) -> str:
    """A scenario as text: its queries, the rows in order of arrival, and what happens to each run."""
    lines = [scenario.text]
    for name, given in scenario.inputs.items():
        lines.append(f"{name}: {len(given.times)} rows")
        for row, time in zip(given.rows.to_pylist(), given.times, strict=True):
            cells = (f"{value:%H:%M:%S.%f}" if isinstance(value, datetime) else str(value) for value in row.values())
            lines.append(f"  {(time - min(given.times)) / 1e6:10.6f}s | {' | '.join(cells)}")
    lines += [f"run {number}: {life}" for number, life in enumerate(scenario.lives, start=1)]
    lines.append(f"commit interval {scenario.commit_interval}, rows per step {scenario.rows_per_step}")
    return "\n".join(lines)


def played(scenario: Scenario) -> Outcome:
    """Play a scenario; raises where a run fails by itself, or breaks a promise."""
    with TemporaryDirectory(prefix="millrace-simulation-", dir=_memory_folder()) as folder:
        try:
            return _Play(scenario, Path(folder)).play()
        finally:
            forget(Path(folder))


def _memory_folder() -> str | None:
    """A folder whose files take no disk, where there is one."""
    folder = Path("/dev/shm")
    return str(folder) if folder.is_dir() else None


class _Play:
    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario, self.folder = scenario, folder
        self.random = Random(scenario.seed)
        self.feeds = {
            name: Arrivals(each.rows, arrivals_of(list(each.times))) for name, each in scenario.inputs.items()
        }
        start = min((each.times[0] for each in scenario.inputs.values() if each.times), default=0)
        self.clock = SimulatedClock(start, self.random, lambda: earliest(list(self.feeds.values())))
        for feed in self.feeds.values():
            feed.clock, feed.random = self.clock, self.random
        self.outcome = Outcome()
        self.text = scenario.text
        self._bound: dict[tuple[Any, ...], Amendment] = {}
        self._files: dict[tuple[str, str], NetworkFile] = {}

    def play(self) -> Outcome:
        """Let one run follow the other, and see what came of it."""
        lives = self.scenario.lives
        # What has not arrived when the last fault strikes comes as it arrives, or all at once to the run that ends.
        for life in (*lives, Life()) if not lives or self.random.random() < 0.5 else lives:
            self._live(life, "stopped")
        for feed in self.feeds.values():
            feed.clock = None
        run = self._live(Life(), "end")
        assert run is not None
        self._check_end(run)
        return self.outcome

    def _live(self, life: Life, ending: Ending) -> CheckedRun | None:
        """One run; None if its fault has ended it."""
        self.text = life.text or self.text
        fate = Fate(life.fault, self.folder)
        self.clock.begin(fate)
        try:
            with using(fate.disk):
                run = self._opened(life, ending)
                self._note(run)
                run.run()
                self._note(run)
                return run
        except (PowerCut, OSError, MillraceError):
            if life.fault is None or not fate.struck:
                raise
            self.outcome.seen[f"{life.fault.kind} at {life.fault.at}"] += 1
            fate.end(self.random)
            if life.fault.kind == "damage":
                self._damage()
            return None

    def _damage(self) -> None:
        """Change a bit of the checkpoint: the next run says so, or it makes no difference to it."""
        damage = Damage.done(self.folder / "checkpoint", self.random)
        if damage is None:
            return
        fate = Fate(RunFault("stop"), self.folder)
        self.clock.begin(fate)
        try:
            with using(fate.disk):
                self._opened(Life(), "stopped").run()
            self.outcome.seen["damage harmless"] += 1
        except MillraceError:
            self.outcome.seen["damage found"] += 1
            damage.mend()

    def _opened(self, life: Life, ending: Ending) -> CheckedRun:
        changes = ScriptedChanges(self._read(self.text).network, self.text, self._bind, self._read)
        changes.script_events(list(life.events), self.clock)
        options = RunOptions("local", ending, self.folder / "checkpoint", commit_interval=self.scenario.commit_interval)
        return CheckedRun(
            changes.network,
            options,
            feeds=self.feeds,
            changes=changes,
            clock=self.clock,
            rows_per_step=self.scenario.rows_per_step,
        )

    # Sinks: every query's results go to files, or to a store

    def _sunk(self, network: QueryNetwork) -> QueryNetwork:
        return QueryNetwork(tuple(self._with_sink(each) for each in network.queries))

    def _with_sink(self, query: Query) -> Query:
        path = str(self.folder / "results" / query.name)
        connector = Connector("parquet", {"path": path})
        if crc32(query.name.encode()) % 2:
            connector = Connector("python", {"writer": RESULT_STORE, "path": path})
        return replace(query, sink=Sink(query.name, connector))

    # Texts are read once: every run of a play reads the same ones.

    def _bind(self, declared: str, text: str, queries: Sequence[Query]) -> Amendment:
        key = declared, text, tuple((each.name, each.since) for each in queries)
        if key not in self._bound:
            amendment = bind_changes(declared, text, queries)
            changes = (
                Added(self._with_sink(each.query)) if isinstance(each, Added) else each for each in amendment.changes
            )
            self._bound[key] = replace(amendment, changes=tuple(changes))
        return self._bound[key]

    def _read(self, text: str, beside: str = "") -> NetworkFile:
        if (text, beside) not in self._files:
            file = read_file(text, beside)
            self._files[text, beside] = replace(file, network=self._sunk(file.network))
        return self._files[text, beside]

    # What is known at the end

    def _note(self, run: CheckedRun) -> None:
        present = {query.name: query for query in run.changes.network.queries}
        self.outcome.queries.update(present)
        self.outcome.dropped = set(self.outcome.queries) - set(present)

    def _check_end(self, run: CheckedRun) -> None:
        outcome = self.outcome
        outcome.sources = run.metrics().sources
        for name, source in outcome.sources.items():
            rows = len(self.scenario.inputs[name].times)
            if source.received != rows or source.buffered:
                raise BrokenPromise(f'stream "{name}" of {rows} rows ends with {source}')
        for name, query in outcome.queries.items():
            outcome.results[name] = results_of(query)
