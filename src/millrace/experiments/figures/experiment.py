"""A figure as a declaration: the cases it runs, the table and the panels of what they measure, and its claims.

Rules:
- A case runs in a process of its own, so that the cases of a figure share the cores.
- Virtual time and counted bytes are exact: the same case measures the same values on any machine.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context
from typing import Protocol

from millrace.errors import RunError
from millrace.experiments.drawing import svg
from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Chart, Measured, Point, Results

PLACE = "place"
"""Where on its curve a point lies, as a value of a column."""
_WORKERS = 4
"""Processes at most: more would wait for the longest case of a figure."""


class Case(Protocol):
    """What is run at a point of a figure: frozen data that can be sent to another process."""

    def measure(self) -> Measured:
        """Run it, and return what was measured."""


@dataclass(frozen=True)
class Figure:
    """An experiment of a paper.

    `cases` are run in their order: the longest first. `columns` names the columns of the table, and the measured value
    in each, or PLACE; before them stands the curve, divided at commas into the columns of `curve`. The rows are sorted
    by curve and place, or, if not `sort_rows`, in the order of the cases. `places` are the names of the places 0, 1, 2
    and so on, where these are no numbers.
    """

    name: str
    paper: str
    shows: str
    cases: Callable[[], Mapping[Point, Case]]
    columns: Mapping[str, str]
    panels: Sequence[Chart]
    claims: Callable[[Results], list[Claim]]
    curve: tuple[str, ...] = ("curve",)
    sort_rows: bool = True
    places: Sequence[str] = ()

    def table(self, found: Results) -> list[dict[str, object]]:
        """One row per case."""
        points = sorted(found, key=lambda point: (point[0], point[1] or 0.0)) if self.sort_rows else list(found)
        return [self._row(*point, found[point]) for point in points]

    def _row(self, curve: str, place: float | None, measured: Measured) -> dict[str, object]:
        parts = zip(self.curve, curve.rsplit(", ", len(self.curve) - 1), strict=True)
        named = "" if place is None else self.places[int(place)] if self.places else place
        values = {PLACE: named, **measured}
        return {**dict(parts), **{name: values[value] for name, value in self.columns.items()}}

    def read(self, rows: Iterable[Mapping[str, str]]) -> Results:
        """What the rows of its table say: enough for its picture, not for its claims."""
        found = Results()
        for row in rows:
            values = {value: row[name] for name, value in self.columns.items()}
            place = values.pop(PLACE, "")
            number = self.places.index(place) if self.places else place
            found[", ".join(row[name] for name in self.curve), None if number == "" else float(number)] = {
                value: float(text) for value, text in values.items()
            }
        return found

    def picture(self, found: Results) -> str:
        """Its panels as an SVG file."""
        return svg(f"{self.paper}: {self.shows}", [partial(panel.draw, found) for panel in self.panels])


def figure(
    *,
    cases: Callable[[], Mapping[Point, Case]],
    columns: Mapping[str, str],
    panels: Sequence[Chart],
    curve: tuple[str, ...] = ("curve",),
    sort_rows: bool = True,
    places: Sequence[str] = (),
) -> Callable[[Callable[[Results], list[Claim]]], Figure]:
    """A decorator that makes a figure of the function that returns its claims.

    The figure has the name of the function; the first line of its docstring is "paper: what it shows."
    """

    def declare(claims: Callable[[Results], list[Claim]]) -> Figure:
        paper, _, shows = (claims.__doc__ or "").partition("\n")[0].rstrip(".").partition(": ")
        name = claims.__name__.replace("_", "-")
        return Figure(name, paper, shows, cases, columns, panels, claims, curve, sort_rows, places)

    return declare


@contextmanager
def workers() -> Iterator[Executor]:
    """Processes that run cases; they are ended at once when something goes wrong."""
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
    """Start the processes with Ctrl-C blocked: the signal reaches them too, but the first process handles it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    for _ in range(count):
        pool.submit(os.getpid)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def results(figure: Figure, pool: Executor, known: dict[Case, Measured], done: Callable[[int, int], None]) -> Results:
    """Run all cases of a figure that are not `known`; after each, `done` gets the number finished, and of how many."""
    cases = figure.cases()
    running = {pool.submit(case.measure): case for case in cases.values() if case not in known}
    try:
        for number, future in enumerate(as_completed(running), 1):
            known[running[future]] = future.result()
            done(number, len(running))
    except BrokenProcessPool as error:
        raise RunError(
            f'a process that worked on figure "{figure.name}" has died', hint="Free some memory, and run it again."
        ) from error
    return Results({point: known[case] for point, case in cases.items()})
