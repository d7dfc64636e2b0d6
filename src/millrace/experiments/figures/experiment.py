"""An experiment: something run under several settings, and what is to be learned from their outcomes.

Rules:
- A setting is run in a process of its own, so that the settings of an experiment share the cores.
- Virtual time and counted bytes are exact: the same setting gives the same outcome, on any machine.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import active_children, get_context
from typing import Protocol

import numpy as np
import pyarrow as pa

from millrace.errors import RunError
from millrace.experiments.figures.claims import Claim
from millrace.experiments.pictures import Picture
from millrace.hosts.virtual.host import Costs, VirtualRun
from millrace.kernel.elements import Times
from millrace.language import parse_network

_SECOND = 1e6
_WORKERS = 4
"""Processes at most: more would wait for the longest setting of an experiment."""

Key = tuple[str, float | None]
"""A setting of a figure: which curve it belongs to, and where on it (None: everywhere)."""


@dataclass(frozen=True)
class Setting:
    """A network to be run, for how many seconds of input, and what work costs in it (microseconds).

    `watched` keeps when results came out, and a digest of them.
    """

    text: str
    seconds: float
    costs: Costs
    ets_arcs: bool = True
    merge_punctuation: bool = True
    watched: bool = False

    def outcome(self) -> Outcome:
        """Run the network in virtual time to the end of its input."""
        return _in_virtual_time(self)


class Case(Protocol):
    """What is run for a point of a figure: frozen data that another process can take over."""

    def outcome(self) -> Outcome:
        """Run it."""


@dataclass(frozen=True)
class Outcome:
    """What came of a setting; times are seconds.

    `latency` is the mean time from a row's arrival to its result, `idle` the share of the time in which an operator
    idle-waited, `peak` the greatest number of elements in the whole graph, `answers` a digest of all results;
    `memory` is the most bytes in it, `turned_away` the rows that an operator refused, `rate` the rows a second that
    it stood; `seconds` is the processor time that it took, which alone is not the same again. `staleness` and
    `queue_staleness` are those of the application and the queue, averages over time and keys; `allocated` and `used`
    are locations of a queue, averages over time. `p99` is the staleness of the application that one in a hundred
    exceeds, over keys and moments; `wrong` the keys whose answers went back in time or ended with another than the
    newest; `switches` how often a queue changed its policy by itself; `parts` what it was for each query or phase.
    """

    results: int = 0
    latency: float = 0.0
    idle: float = 0.0
    peak: int = 0
    moments: Times = field(default_factory=lambda: np.empty(0, np.int64))
    """When results came out (microseconds), and `counts`, how many each time."""
    counts: Times = field(default_factory=lambda: np.empty(0, np.int64))
    answers: str = ""
    memory: int = 0
    turned_away: int = 0
    rate: float = 0.0
    seconds: float = 0.0
    staleness: float = 0.0
    queue_staleness: float = 0.0
    allocated: float = 0.0
    used: float = 0.0
    p99: float = 0.0
    wrong: int = 0
    switches: int = 0
    parts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What an experiment shows: a table, the claims, a picture."""

    table: list[dict[str, object]]
    claims: list[Claim]
    picture: Picture


@dataclass(frozen=True)
class Figure:
    """An experiment of a paper: what it shows, its settings, and how their outcomes are read."""

    name: str
    paper: str
    shows: str
    settings: Callable[[], Mapping[Key, Case]]
    findings: Callable[[Mapping[Key, Outcome]], Findings]


def outcome(case: Case) -> Outcome:
    """Run a case; called in a process of its own."""
    return case.outcome()


def _in_virtual_time(setting: Setting) -> Outcome:
    run = VirtualRun(
        parse_network(setting.text),
        ending="end",
        cost=setting.costs,
        rows_per_step=1,
        ets_arcs=setting.ets_arcs,
        merge_punctuation=setting.merge_punctuation,
    )
    run.run()
    metrics = run.metrics()
    (sink,) = metrics.sinks.values()
    found = Outcome(
        results=sink.rows,
        latency=sink.latency.mean / _SECOND,
        idle=max(node.idle for node in metrics.nodes.values()) / (setting.seconds * _SECOND),
        peak=metrics.peak_queued,
    )
    return _watched(found, run) if setting.watched else found


def _watched(found: Outcome, run: VirtualRun) -> Outcome:
    deliveries = run.deliveries
    return replace(
        found,
        moments=np.array([each.now for each in deliveries], np.int64),
        counts=np.array([each.rows.num_rows for each in deliveries], np.int64),
        answers=_digest([each.rows for each in deliveries]),
    )


def _digest(tables: list[pa.Table]) -> str:
    """A short name for the rows in the order in which they came out, however they were cut."""
    if not tables:
        return ""
    rows = pa.concat_tables(tables).combine_chunks()
    made = hashlib.sha256()
    for column in rows.columns:
        made.update(repr(column.cast(pa.string()).to_pylist()).encode())
    return made.hexdigest()[:16]


@contextmanager
def workers() -> Iterator[Executor]:
    """Processes that run settings; when something goes wrong meanwhile, they are ended at once."""
    others = active_children()
    count = min(_WORKERS, os.cpu_count() or 1)
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        try:
            _start(pool, count)
            yield pool
        except BaseException:
            # The pool's own thread sees them end, and is waited for: left alone it might close the pipe that
            # Python's exit writes to.
            for process in active_children():
                if process not in others:
                    process.terminate()
            raise


def _start(pool: Executor, count: int) -> None:
    """Let the processes begin with Ctrl-C blocked: it reaches them too, but the first process answers for all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    for _ in range(count):
        pool.submit(os.getpid)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def outcomes(
    figure: Figure, pool: Executor, known: dict[Case, Outcome], done: Callable[[int, int], None]
) -> dict[Key, Outcome]:
    """Run all settings of a figure that are not `known`; `done` is told after each how many of them are finished."""
    settings = figure.settings()
    running = {pool.submit(outcome, setting): setting for setting in settings.values() if setting not in known}
    try:
        for number, future in enumerate(as_completed(running), 1):
            known[running[future]] = future.result()
            done(number, len(running))
    except BrokenProcessPool as error:
        raise RunError(
            f'a process that worked on figure "{figure.name}" has died', hint="Free some memory, and run it again."
        ) from error
    return {key: known[setting] for key, setting in settings.items()}
