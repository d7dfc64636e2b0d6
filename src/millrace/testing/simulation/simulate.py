"""A user's own network under kills, power cuts and any order of work, held to what it gives in one go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.api.network import Network
from millrace.connectors.inputs import open_input
from millrace.errors import RequestError
from millrace.hosts.arrivals import arrivals
from millrace.kernel.elements import ARRIVED, NO_BOUND
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.updates.queue_placement import key_of
from millrace.testing.hosts import Given
from millrace.testing.simulation.run_faults import any_fault
from millrace.testing.simulation.scenario import Life, Scenario, TimedRows, played, scenario_text
from millrace.testing.simulation.shrinking import shrunk
from millrace.testing.tables import Rows

Row = dict[str, Any]
Oracle = Callable[[Mapping[str, list[Row]]], Mapping[str, Sequence[Row]]]
_SECOND = 1_000_000
_SHEDS = "append_shed"


class SimulationFailed(AssertionError):
    """A network gave other results under faults than in one go, or broke a promise on the way."""


def simulate(
    network: str | Network,
    seed: int,
    inputs: Mapping[str, Given] | None = None,
    *,
    oracle: Oracle | None = None,
) -> dict[str, list[Row]]:
    """The results of a network that was killed and started again at random, if they are what they must be.

    Rows arrive by their `arrive` column, or by the time that the stream goes by, and are read in batches of any size;
    operators run in any order; the seed decides when the process is killed, the power fails or a disk is full. The
    results must be those of the same network in one go, or what `oracle` makes of the rows of each stream. Of an
    update query the last result of each key must be. Without `inputs` streams are read from where they are declared.

    >>> results = simulate(
    ...     '''
    ...     CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
    ...     CREATE QUERY q AS SELECT k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k;
    ... ''',
    ...     seed=7,
    ...     inputs={"s": pa.table({"k": ["a", "a", "b"], "ts": pa.array([0, 1, 70], pa.timestamp("s"))})},
    ... )
    >>> sorted((row["k"], row["n"]) for row in results["q"])
    [('a', 2), ('b', 1)]
    """
    text = network if isinstance(network, str) else network.script
    bound, random = parse_network(text), Random(seed)
    arriving = {stream.name: _arriving(stream, (inputs or {}).get(stream.name)) for stream in bound.streams()}
    if oracle is None:
        _refuse_clock(bound)
    whole = Scenario(seed, text, arriving)
    lives = tuple(Life(any_fault(random)) for _ in range(random.randint(1, 4)))
    interval = _span(arriving) // random.choice((1, 3, 8)) + 1
    scenario = replace(whole, lives=lives, commit_interval=interval, rows_per_step=random.choice((None, 1, 3)))
    failure, results = _failure(bound, scenario, oracle)
    if failure is None:
        return results
    small = shrunk(scenario, lambda other: _failure(bound, other, oracle)[0] is not None, most=60)
    said = _failure(bound, small, oracle)[0] or failure
    raise SimulationFailed(f"{said}\n\n{scenario_text(small)}\n\nreplay it: simulate(network, seed={seed})")


def _failure(
    network: QueryNetwork, scenario: Scenario, oracle: Oracle | None
) -> tuple[str | None, dict[str, list[Row]]]:
    """What is wrong with the results of a scenario, and the results."""
    rows = {name: given.rows.to_pylist() for name, given in scenario.inputs.items()}
    # Whatever a run raises by itself is a failure of the simulation.
    try:
        expected = (
            oracle(rows) if oracle is not None else played(replace(scenario, lives=(), rows_per_step=None)).results
        )
        found = played(scenario).results
    except (AssertionError, RuntimeError, ValueError, LookupError, TypeError, OSError) as error:
        return f"{type(error).__name__}: {error}", {}
    for query in network.queries:
        if query.name in found and query.name in expected and query.options.get("queue") != _SHEDS:
            ours, theirs = (_settled(query, each[query.name]) for each in (found, expected))
            if not same_rows(ours, theirs):
                return f'query "{query.name}" gave\n{_listed(ours)}\ninstead of\n{_listed(theirs)}', found
    return None, found


def _settled(query: Query, rows: Iterable[Row]) -> list[Row]:
    """The rows, or of an update query the last of each key."""
    key = key_of(query)
    return list(rows) if key is None else list({tuple(row[name] for name in key): row for row in rows}.values())


def _listed(rows: Sequence[Row]) -> str:
    return "\n".join(f"  {row}" for row in rows[:20]) + (f"\n  and {len(rows) - 20} more" if len(rows) > 20 else "")


def same_rows(found: Sequence[Row], expected: Sequence[Row]) -> bool:
    """True if two lists hold the same rows in any order, but for the last digits of fractions.

    >>> same_rows([{"k": "a", "x": 0.1 + 0.2}, {"k": None, "x": None}], [{"k": None, "x": None}, {"k": "a", "x": 0.3}])
    True
    """
    ours, theirs = (sorted(map(_comparable, rows), key=repr) for rows in (found, expected))
    return len(ours) == len(theirs) and all(map(_alike, ours, theirs))


def _comparable(row: Row) -> tuple[list[Any], list[Any]]:
    """What is exact in a row, and its fractions."""
    exact = [(name, value) for name, value in row.items() if not isinstance(value, float)]
    return exact, [float(f"{value:.9g}") for value in row.values() if isinstance(value, float)]


def _alike(one: tuple[list[Any], list[Any]], other: tuple[list[Any], list[Any]]) -> bool:
    return one[0] == other[0] and all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(one[1], other[1], strict=True))


# What arrives


def _arriving(stream: Stream, given: Given | None) -> TimedRows:
    """The rows of a stream and when each arrives: as they say, by their time, or one a second."""
    table = _table(stream, given)
    if ARRIVED in table.schema.names:
        times = table.column(ARRIVED).to_numpy()
        return TimedRows(table.drop_columns([ARRIVED]), tuple(times.tolist()))
    rows = table.combine_chunks().to_batches()
    found = arrivals(stream, rows[0], NO_BOUND) if rows else np.empty(0, np.int64)
    if found is None:
        found = np.arange(table.num_rows) * _SECOND
    return TimedRows(table, tuple(int(time) for time in found))


def _table(stream: Stream, given: Given | None) -> pa.Table:
    if given is None:
        source = open_input(stream, list(stream.schema.names), None, None)
        chunks = []
        while (chunk := source.read()) is not None:
            chunks.append(chunk.rows)
        return pa.Table.from_batches(chunks)
    if isinstance(given, Rows):
        return given.arriving()
    return given if isinstance(given, pa.Table) else pa.concat_tables(given)


def _span(arriving: Mapping[str, TimedRows]) -> int:
    times = [time for each in arriving.values() for time in each.times]
    return max(times) - min(times) if times else 0


def _refuse_clock(network: QueryNetwork) -> None:
    """Refuse streams whose rows get their time from the clock: in one go they get others."""
    for stream in network.streams():
        if stream.time.kind == "internal":
            raise RequestError(
                f'the rows of stream "{stream.name}" get their time from the clock, which differs from run to run',
                hint="Give an oracle that does not look at times, or declare TIMESTAMP BY a column of the rows.",
            )
