"""`FROM generate`: Poisson, evenly spaced or bursty arrivals, with lag, disorder and a silence, the same for a seed.

A stream is made in slices of about `SLICE_ROWS` rows, each from its own seed, so that a run can resume at any slice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.connectors.generators.generator_options import check_choice, check_positive, parse_options, start_micros
from millrace.kernel.columns.casts import cast
from millrace.kernel.elements import ARRIVED, TIMESTAMP, Times
from millrace.plan.nodes.endpoints import Stream

SLICE_ROWS = 65_536
ARRIVALS = ("poisson", "even", "bursts")
_SECOND = 1_000_000


@dataclass(frozen=True)
class GenerateOptions:
    """The options of `FROM generate`; lengths of time are seconds.

    `lag` is how long after its own time a row arrives, `disorder` how far times are shaken back, and nothing is sent
    between `silent_from` and `silent_to`. With `arrivals` "bursts", `burst` rows come at one moment, and the moments
    are evenly spaced so that the rate is kept.
    """

    rate: float = 100.0
    seconds: float = 60.0
    start: str = "2024-01-01 00:00:00"
    seed: int = 1
    arrivals: str = "poisson"
    burst: int = 10
    keys: int = 100
    lag: float = 0.0
    disorder: float = 0.0
    silent_from: float = 0.0
    silent_to: float = 0.0

    @property
    def slices(self) -> int:
        """How many slices the stream has."""
        return max(1, int(np.ceil(self.rate * self.seconds / SLICE_ROWS)))


def options_of(stream: Stream) -> GenerateOptions:
    """The checked options of a generated stream."""
    options = parse_options(stream, GenerateOptions)
    check_choice("arrivals", options.arrivals, ARRIVALS)
    check_positive(options, "rate", "seconds", "burst", "keys")
    start_micros(options.start)
    return options


def generate(stream: Stream, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """The rows of slice `number`, in order of arrival, with their arrival in `__arrived`."""
    options = options_of(stream)
    random = np.random.default_rng([options.seed, number])
    times = _times(options, number, random)
    shaken = times - random.integers(0, int(options.disorder * _SECOND) + 1, len(times))
    columns = [_column(field, shaken, stream.time.column, options, number) for field in schema]
    arrived = pa.array(times + int(options.lag * _SECOND))
    return pa.RecordBatch.from_arrays([*columns, arrived], names=[*schema.names, ARRIVED])


def _times(options: GenerateOptions, number: int, random: np.random.Generator) -> Times:
    offsets = _offsets(options, number, random)
    offsets = offsets[(offsets < options.silent_from) | (offsets >= options.silent_to)]
    micros: Times = start_micros(options.start) + np.round(offsets * _SECOND).astype(np.int64)
    return micros


def _offsets(
    options: GenerateOptions, number: int, random: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds after the start at which the rows of a slice are made."""
    begin = number * SLICE_ROWS / options.rate
    end = min(options.seconds, (number + 1) * SLICE_ROWS / options.rate)
    expected = options.rate * max(0.0, end - begin)
    if options.arrivals == "poisson":
        return np.sort(random.uniform(begin, end, random.poisson(expected)))
    size = options.burst if options.arrivals == "bursts" else 1
    # A burst belongs to the slice that its first row is in, so that none is cut in two.
    first, past = (-(-rows // size) for rows in (number * SLICE_ROWS, number * SLICE_ROWS + round(expected)))
    return np.repeat(np.arange(first, past) * (size / options.rate), size)


def _column(field: pa.Field, times: Times, time: str | None, options: GenerateOptions, number: int) -> pa.Array:
    if pa.types.is_date(field.type) and field.name == time:
        return pa.array(times).cast(TIMESTAMP).cast(field.type, safe=False)
    if field.name == time or pa.types.is_timestamp(field.type):
        return pa.array(times).cast(field.type)
    # A column has its own seed: what it holds must not depend on which others are read.
    random = np.random.default_rng([options.seed, number, *field.name.encode()])
    if pa.types.is_floating(field.type):
        return pa.array(random.random(len(times))).cast(field.type)
    numbers = random.integers(0, options.keys, len(times))
    if pa.types.is_string(field.type):
        names = pa.array([f"{field.name}-{number}" for number in range(options.keys)])
        return names.take(pa.array(numbers))
    if pa.types.is_decimal(field.type):
        return cast(pa.array(numbers), field.type)
    if pa.types.is_boolean(field.type):
        return pa.array(numbers % 2 == 0)
    return pa.array(numbers).cast(field.type, safe=False)
