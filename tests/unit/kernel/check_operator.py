"""The suite that every operator passes: what must hold whatever the operator computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, Punctuation
from millrace.kernel.operators import Operator
from millrace.kernel.state import Changes

Make = Callable[[], Operator]


@dataclass(frozen=True)
class Script:
    """Elements on the ports of an operator, in order of arrival; a punctuation is the merged bound."""

    steps: tuple[tuple[int, Element], ...]


def random_script(seed: int, *, ports: int, keys: int = 3, batches: int = 12) -> Script:
    """Rows with keys, numbers and nulls, out of order but never below the bound sent before."""
    random = np.random.default_rng(seed)
    bound, steps = int(random.integers(-50, 50)), []
    for _ in range(batches):
        steps.append((int(random.integers(0, ports)), _rows(random, bound, keys)))
        if random.random() < 0.6:
            bound += int(random.integers(1, 30))
            steps.append((0, Punctuation(bound)))
    steps.append((0, Punctuation(END_OF_TIME)))
    return Script(tuple(steps))


def _rows(random: np.random.Generator, bound: int, keys: int) -> Batch:
    count = int(random.integers(1, 20))
    names = [None, *(f"k{number}" for number in range(keys))]
    return Batch(
        pa.RecordBatch.from_arrays(
            [
                pa.array([names[each] for each in random.integers(0, keys + 1, count)], pa.string()),
                pa.array([None if each == 0 else int(each) for each in random.integers(0, 9, count)], pa.int64()),
                pa.array(bound + random.integers(0, 60, count)),
            ],
            names=["k", "n", TIME],
        )
    )


def outputs(operator: Operator, script: Script) -> list[Element]:
    """All that an operator yields for a script."""
    found: list[Element] = []
    for port, element in script.steps:
        if isinstance(element, Punctuation):
            found += operator.on_punctuation(element)
        else:
            found += operator.on_batch(port, element)
    return found


def rows_of(elements: Sequence[Element]) -> list[str]:
    """The rows of all batches as a comparable multiset."""
    return sorted(repr(row) for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist())


def rebatched(script: Script, seed: int) -> Script:
    """The same rows cut into other batches."""
    random = np.random.default_rng(seed)
    steps: list[tuple[int, Element]] = []
    for port, element in script.steps:
        if isinstance(element, Punctuation) or len(element) < 2:
            steps.append((port, element))
            continue
        cut = int(random.integers(1, len(element)))
        steps += [(port, element.slice(0, cut)), (port, element.slice(cut, len(element) - cut))]
    return Script(tuple(steps))


def check_operator(make: Make, *, ports: int = 1, seeds: int = 8) -> None:
    """Check every promise of the operator contract over random scripts."""
    for seed in range(seeds):
        script = random_script(seed, ports=ports)
        before = [each.rows.to_pylist() for _, each in script.steps if isinstance(each, Batch)]
        expected = outputs(make(), script)
        check_bounds(expected)
        assert rows_of(outputs(make(), rebatched(script, seed))) == rows_of(expected), "re-batching changed the rows"
        assert rows_of(restarted(make, script, seed)) == rows_of(expected), "a restart changed the rows"
        after = [each.rows.to_pylist() for _, each in script.steps if isinstance(each, Batch)]
        assert after == before, "the operator altered its input"


def check_bounds(elements: Sequence[Element]) -> None:
    """Output bounds never go back, and no row is below one that was sent before it."""
    bound = NO_BOUND
    for element in elements:
        if isinstance(element, Punctuation):
            assert element.until >= bound, "an output bound went back"
            bound = element.until
        else:
            assert int(element.times.min()) >= bound, "a row is below an emitted bound"


def restarted(make: Make, script: Script, seed: int) -> list[Element]:
    """The outputs when the operator is saved and made anew from its segments at random points."""
    random = np.random.default_rng(seed)
    operator, segments, found = make(), {}, []
    for step in script.steps:
        found += outputs(operator, Script((step,)))
        if random.random() < 0.4:
            changes = operator.changes()
            segments = {number: table for number, table in segments.items() if number not in changes.removed}
            segments.update(changes.added)
            assert not set(changes.removed) & set(changes.added)
            operator = make()
            if changes.note:
                operator.restore(Changes(dict(segments), (), changes.note))
    return found
