"""The suite that every operator which works by input passes: each input has a bound of its own.

An operator is driven as the executor drives it: rows, then the bound that rides on them; told first of the bound that
holds already before them if it leads; asked to go on while it is unfinished; saved only at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import ARRIVED, END_OF_TIME, NO_BOUND, TIME, Batch, Element, Punctuation
from millrace.kernel.operator import Operator
from tests.unit.kernel.check_operator import Make, Script, check_bounds, rebatched, rows_of
from tests.unit.kernel.saved_segments import SavedSegments

TIMESTAMP = pa.timestamp("us", tz="UTC")
Seen = Callable[[Sequence[Element]], list[str]]


def schema_of(port: int) -> pa.Schema:
    """The user's columns of a port: a key, a number and a time that may follow the row's own, each with nulls."""
    return pa.schema([(f"k{port}", pa.string()), (f"n{port}", pa.int64()), (f"u{port}", TIMESTAMP)])


def schemas(ports: int = 2) -> list[pa.Schema]:
    return [schema_of(port) for port in range(ports)]


def random_scripts(
    seed: int, ports: int = 2, *, keys: int = 3, batches: int = 14, ordered: bool = False, arrived: bool | None = None
) -> Script:
    """Rows and bounds of several ports, in order of arrival, never below the bound that the port was sent before.

    Some ports lag far behind others; a bound stands alone or rides on rows. `ordered`: the rows of a port come in
    order of time. `arrived`: whether rows have their arrival; by default in every third script.
    """
    random = np.random.default_rng(seed)
    timed = seed % 3 == 2 if arrived is None else arrived
    bounds = [int(bound) for bound in random.integers(-50, 50) + random.integers(0, 40, ports)]
    steps: list[tuple[int, Element]] = []
    for clock in range(batches):
        port = int(random.integers(0, ports))
        batch = _rows(random, port, bounds[port], keys, clock if timed else None, ordered)
        latest = int(batch.times.max()) if ordered else bounds[port]
        bounds[port] = max(latest, bounds[port] + int(random.integers(0, 30)))
        match int(random.integers(0, 3)):
            case 0:
                steps.append((port, batch.ending(bounds[port])))
            case 1:
                steps += [(port, batch), (port, Punctuation(bounds[port]))]
            case _:
                bounds[port] = latest
                steps.append((port, batch))
    ends = random.permutation(ports).tolist()
    return Script((*steps, *((port, Punctuation(END_OF_TIME)) for port in ends)))


def _rows(random: np.random.Generator, port: int, bound: int, keys: int, clock: int | None, ordered: bool) -> Batch:
    count = int(random.integers(1, 16))
    names = [None, *(f"k{number}" for number in range(keys))]
    times = bound + random.integers(0, 60, count)
    times = np.sort(times) if ordered else times
    numbers, untils = random.integers(0, 9, count), times + random.integers(-5, 40, count)
    columns = [
        pa.array([names[each] for each in random.integers(0, keys + 1, count)], pa.string()),
        pa.array(numbers, mask=numbers == 0),
        pa.array(untils, mask=random.random(count) < 0.1).cast(TIMESTAMP),
        pa.array(times),
    ]
    if clock is not None:
        columns.append(pa.array(clock * 100 + np.arange(count)))
    return Batch(pa.RecordBatch.from_arrays(columns, names=[*schema_of(port).names, TIME, ARRIVED][: len(columns)]))


class Driven:
    """An operator at work: what it yields, and what each port has been told."""

    def __init__(self, make: Make, limit: int | None = None) -> None:
        self.make = make
        self.limit = limit
        self.operator: Operator = make()
        self.told: dict[int, int] = {}
        self.found: list[Element] = []
        self._segments = SavedSegments()

    def step(self, port: int, element: Element) -> list[Element]:
        """Hand one element over; what it yields for it."""
        before = len(self.found)
        if isinstance(element, Batch):
            self._rows(port, element)
        else:
            assert isinstance(element, Punctuation)
            self._bound(port, element.until)
        return self.found[before:]

    def _rows(self, port: int, batch: Batch) -> None:
        if self.operator.leads and batch.until is not None:
            self._bound(port, min(batch.until, int(batch.times.min())))
        self._take(self.operator.on_batch(port, batch))
        if batch.until is not None:
            self._bound(port, batch.until)

    def _bound(self, port: int, until: int) -> None:
        if until > self.told.get(port, NO_BOUND):
            self.told[port] = until
            self._take(self.operator.on_bound(port, Punctuation(until)))

    def _take(self, elements: Iterator[Element]) -> None:
        compared = self.operator.compared
        self.found += elements
        while self.operator.unfinished:
            self.found += self.operator.on_more(self.limit)
        assert self.operator.compared >= compared, "the count of pairs that were compared went back"
        self._check_ways()

    def _check_ways(self) -> None:
        for way in self.operator.wants():
            waits = [port for port, until in way.items() if until > self.told.get(port, NO_BOUND)]
            assert waits, "it waits for bounds that have been reached"

    def restart(self) -> None:
        """Save it, and go on with a new one from its segments."""
        saved = self._segments.after(self.operator.changes())
        held, wants = self.operator.held, [dict(way) for way in self.operator.wants()]
        self.operator = self.make()
        if saved.note:
            self.operator.restore(saved)
        assert self.operator.held == held, "a restart changed what is held"
        assert [dict(way) for way in self.operator.wants()] == wants, "a restart changed what it waits for"


def outputs(make: Make, script: Script, limit: int | None = None) -> list[Element]:
    """All that an operator yields for a script."""
    driven = Driven(make, limit)
    for port, element in script.steps:
        driven.step(port, element)
    return driven.found


def restarted(make: Make, script: Script, seed: int, share: float) -> list[Element]:
    """The outputs when the operator is saved and made anew at a share of all points."""
    random, driven = np.random.default_rng(seed), Driven(make)
    for port, element in script.steps:
        driven.step(port, element)
        if random.random() < share:
            driven.restart()
    return driven.found


def row_by_row(script: Script) -> Script:
    """The same rows, one a batch."""
    steps: list[tuple[int, Element]] = []
    for port, element in script.steps:
        if not isinstance(element, Batch):
            steps.append((port, element))
            continue
        last = len(element) - 1
        steps += [(port, element.slice(place, 1).ending(element.until if place == last else None))
                  for place in range(last + 1)]  # fmt: skip
    return Script(tuple(steps))


def interleaved(script: Script, seed: int) -> Script:
    """The same elements of each port in their order, but the ports in another."""
    random = np.random.default_rng(seed)
    lanes: dict[int, list[Element]] = {}
    for port, element in script.steps:
        lanes.setdefault(port, []).append(element)
    turns = random.permutation([port for port, _ in script.steps]).tolist()
    return Script(tuple((port, lanes[port].pop(0)) for port in turns))


def check_by_input(
    make: Make,
    *,
    ports: int = 2,
    seeds: int = 8,
    scripts: Callable[[int], Script] | None = None,
    any_order_of_ports: bool = True,
    promises: bool = True,
    compares: bool = True,
    seen: Seen = rows_of,
) -> None:
    """Check every promise of an operator that works by input over random scripts.

    `seen` is what of its rows must not change with how they were cut and interleaved.
    `any_order_of_ports`: the rows do not depend on how the ports take turns. `promises`: it sends bounds, and keeps
    what `required` says. `compares`: it counts the pairs of rows that it compares.
    """
    compared = 0
    for seed in range(seeds):
        script = random_scripts(seed, ports) if scripts is None else scripts(seed)
        before = _given(script)
        driven = _checked(make, script, promises)
        expected = driven.found
        compared += driven.operator.compared
        _check_same(make, script, seed, expected, seen)
        if any_order_of_ports:
            for turn in range(2):
                other = _checked(make, interleaved(script, seed * 2 + turn), promises)
                assert seen(other.found) == seen(expected), "another order of the ports changed the rows"
        if promises:
            check_required(make, script, seed)
        assert _given(script) == before, "the operator altered its input"
    assert compared > 0 or not compares, "no pair of rows was compared"


def _check_same(make: Make, script: Script, seed: int, expected: Sequence[Element], seen: Seen) -> None:
    """Neither batches nor steps nor restarts change the rows."""
    rows = rows_of(expected)
    assert seen(outputs(make, rebatched(script, seed))) == seen(expected), "re-batching changed the rows"
    assert seen(outputs(make, row_by_row(script))) == seen(expected), "one row at a time changed the rows"
    assert rows_of(outputs(make, script, limit=1)) == rows, "smaller steps changed the rows"
    for share in (0.4, 1.0):
        found = restarted(make, script, seed, share)
        assert rows_of(found) == rows, "a restart changed the rows"
        check_bounds(found)


def _checked(make: Make, script: Script, promises: bool) -> Driven:
    """An operator after a script: its bounds hold and end with the streams, and nothing waits then."""
    driven = Driven(make)
    for port, element in script.steps:
        driven.step(port, element)
    check_bounds(driven.found)
    if promises:
        assert last_bound(driven.found) == END_OF_TIME, "all inputs have ended, the output has not"
    assert not driven.operator.wants(), "all inputs have ended, but something waits"
    return driven


def check_required(make: Make, script: Script, seed: int) -> None:
    """Whatever bound is asked for: it is promised once every input has come as far as the operator says it must."""
    random = np.random.default_rng(seed)
    for stop in random.integers(0, len(script.steps), 4).tolist():
        driven = Driven(make)
        for port, element in script.steps[:stop]:
            driven.step(port, element)
        until = max([bound for bound in driven.told.values() if bound < END_OF_TIME], default=0)
        until += int(random.integers(-40, 60))
        ports = range(1 + max(port for port, _ in script.steps))
        needed = {port: driven.operator.required(until, port) for port in ports}
        for port, bound in needed.items():
            if bound is not None:
                driven.step(port, Punctuation(bound))
        assert last_bound(driven.found) >= until, f"{until} was not promised after {needed}"


def last_bound(elements: Sequence[Element]) -> int:
    """The last bound among some elements."""
    return max([each.until for each in elements if isinstance(each, Punctuation)], default=NO_BOUND)


def _given(script: Script) -> list[object]:
    return [each.rows.to_pylist() for _, each in script.steps if isinstance(each, Batch)]
