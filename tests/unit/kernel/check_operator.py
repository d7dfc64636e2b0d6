"""The suite that every operator passes: what must hold whatever the operator computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Punctuation,
    Times,
)
from millrace.kernel.operator import Operator
from tests.unit.kernel.saved_segments import SavedSegments

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
    groups = [names[each] for each in random.integers(0, keys + 1, count)]
    return _batch(groups, random.integers(0, 9, count), bound + random.integers(0, 60, count))


def _batch(groups: Sequence[str | None], numbers: Times, times: Times) -> Batch:
    """Rows; the number 0 stands for null."""
    columns = [pa.array(groups, pa.string()), pa.array(numbers, mask=numbers == 0), pa.array(times)]
    return Batch(pa.RecordBatch.from_arrays(columns, names=["k", "n", TIME]))


def random_group_script(seed: int, *, keys: int = 4, batches: int = 16) -> Script:
    """Rows whose groups (by `k`) have promised bounds of their own, some far ahead of the stream's."""
    random = np.random.default_rng(seed)
    linear, steps = int(random.integers(-50, 50)), list[tuple[int, Element]]()
    names = [None, *(f"k{number}" for number in range(keys - 1))]
    bounds = np.full(keys, linear)
    for _ in range(batches):
        groups = random.integers(0, keys, int(random.integers(1, 20)))
        times = np.maximum(bounds[groups], linear) + random.integers(0, 60, len(groups))
        steps.append((0, _batch([names[each] for each in groups], random.integers(0, 9, len(groups)), times)))
        if random.random() < 0.7:
            named = random.choice(keys, int(random.integers(1, keys)), replace=False)
            bounds[named] += random.integers(1, 40, len(named))
            promised = pa.record_batch({"k": pa.array([names[each] for each in named], pa.string())})
            steps.append((0, GroupPunctuation(promised, bounds[named])))
        if random.random() < 0.4:
            linear += int(random.integers(1, 30))
            steps.append((0, Punctuation(linear)))
    return Script((*steps, (0, Punctuation(END_OF_TIME))))


def outputs(operator: Operator, script: Script) -> list[Element]:
    """All that an operator yields for a script."""
    found: list[Element] = []
    for port, element in script.steps:
        if isinstance(element, Punctuation):
            found += operator.on_punctuation(element)
        elif isinstance(element, GroupPunctuation):
            found += operator.on_groups(element)
        elif isinstance(element, JointPunctuation):
            found += operator.on_joint(element)
        else:
            found += operator.on_batch(port, element)
    return found


def rows_of(elements: Sequence[Element]) -> list[str]:
    """The rows of all batches as a comparable multiset."""
    return sorted(repr(row) for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist())


def rebatched(script: Script, seed: int) -> Script:
    """The same rows cut into other batches; the bound that rides on a batch rides on its last piece."""
    random = np.random.default_rng(seed)
    steps: list[tuple[int, Element]] = []
    for port, element in script.steps:
        if not isinstance(element, Batch) or len(element) < 2:
            steps.append((port, element))
            continue
        cut = int(random.integers(1, len(element)))
        rest = element.slice(cut, len(element) - cut).ending(element.until)
        steps += [(port, element.slice(0, cut)), (port, rest)]
    return Script(tuple(steps))


def check_operator(
    make: Make, *, ports: int = 1, seeds: int = 8, scripts: Callable[[int], Script] | None = None
) -> None:
    """Check every promise of the operator contract over random scripts."""
    for seed in range(seeds):
        script = random_script(seed, ports=ports) if scripts is None else scripts(seed)
        before = [each.rows.to_pylist() for _, each in script.steps if isinstance(each, Batch)]
        expected = outputs(make(), script)
        check_bounds(expected)
        assert rows_of(outputs(make(), rebatched(script, seed))) == rows_of(expected), "re-batching changed the rows"
        for share in (0.4, 1.0):
            assert rows_of(restarted(make, script, seed, share)) == rows_of(expected), "a restart changed the rows"
        after = [each.rows.to_pylist() for _, each in script.steps if isinstance(each, Batch)]
        assert after == before, "the operator altered its input"


def check_bounds(elements: Sequence[Element]) -> None:
    """Output bounds never go back, and no row is below one that was sent before it."""
    bound = NO_BOUND
    for element in elements:
        if isinstance(element, Punctuation):
            assert element.until >= bound, "an output bound went back"
            bound = element.until
        elif isinstance(element, Batch):
            assert int(element.times.min()) >= bound, "a row is below an emitted bound"


def restarted(make: Make, script: Script, seed: int, share: float = 0.4) -> list[Element]:
    """The outputs when the operator is saved and made anew from its segments at a share of all points."""
    random = np.random.default_rng(seed)
    operator, segments, found = make(), SavedSegments(), list[Element]()
    for step in script.steps:
        found += outputs(operator, Script((step,)))
        if random.random() < share:
            saved = segments.after(operator.changes())
            operator = make()
            if saved.note:
                operator.restore(saved)
    return found
