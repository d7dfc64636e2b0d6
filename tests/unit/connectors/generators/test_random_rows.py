"""Generated streams: when their rows come, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.connectors.generators.random_rows import SLICE_ROWS, generate, options_of
from millrace.errors import RequestError
from millrace.kernel.elements import ARRIVED, TIMESTAMP, Times
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.endpoints import Connector, Stream

SCHEMA = pa.schema([("v", pa.float64()), ("ts", TIMESTAMP)])


def stream(**options: object) -> Stream:
    texts = {key: str(value) for key, value in options.items()}
    return Stream("s", SCHEMA, TimeContract("external", "ts"), Connector("generate", texts))


def arrived(**options: object) -> Times:
    """When all rows come, in microseconds after the start."""
    made = stream(**options)
    slices = [generate(made, SCHEMA, number) for number in range(options_of(made).slices)]
    times = np.concatenate([each.column(ARRIVED).to_numpy() for each in slices])
    return times - int(recipe_start(made))


def recipe_start(made: Stream) -> int:
    start: int = pa.scalar(options_of(made).start).cast(pa.timestamp("us")).value
    return start


def test_bursts_come_at_one_moment_and_keep_the_rate() -> None:
    times = arrived(rate=1000, seconds=1, arrivals="bursts", burst=100)
    moments, counts = np.unique(times, return_counts=True)
    assert counts.tolist() == [100] * 10
    assert moments.tolist() == [number * 100_000 for number in range(10)]


def test_a_burst_is_never_cut_in_two_by_a_slice() -> None:
    seconds = 3 * SLICE_ROWS / 1000
    moments, counts = np.unique(arrived(rate=1000, seconds=seconds, arrivals="bursts", burst=700), return_counts=True)
    assert set(counts.tolist()) == {700}
    assert len(moments) == -(-3 * SLICE_ROWS // 700)


def test_even_arrivals_are_evenly_spaced_across_slices() -> None:
    times = arrived(rate=1000, seconds=2 * SLICE_ROWS / 1000, arrivals="even")
    assert len(times) == 2 * SLICE_ROWS
    assert set(np.diff(times).tolist()) == {1000}


def test_poisson_arrivals_have_the_rate_and_the_spread_of_poisson() -> None:
    gaps = np.diff(arrived(rate=1000, seconds=60))
    assert gaps.mean() == pytest.approx(1000, rel=0.02)
    assert gaps.std() == pytest.approx(1000, rel=0.02)


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    one, again, other = (generate(stream(seed=seed, rate=50), SCHEMA, 0) for seed in (1, 1, 2))
    assert one.equals(again) and not one.equals(other)


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"arrivals": "burst"}, 'option "arrivals" does not take "burst"'),
        ({"burst": 0}, 'option "burst" does not take "0"'),
        ({"rate": -1}, 'option "rate" does not take "-1.0"'),
        ({"rate": "fast"}, 'option "rate" is "fast", which is no number'),
        ({"rate": "1e400"}, 'option "rate" is "1e400", which is no number'),
        ({"start": "soon"}, 'option "start" is "soon", which is no time'),
        ({"keys": 0}, 'option "keys" does not take "0"'),
        ({"seconds": -1}, 'option "seconds" does not take "-1.0"'),
        ({"speed": 2}, 'stream "s" has no generate option "speed"'),
    ],
)
def test_what_cannot_be_generated_is_refused(options: dict[str, object], fact: str) -> None:
    with pytest.raises(RequestError) as raised:
        options_of(stream(**options))
    assert raised.value.fact == fact and raised.value.hint
