"""Aggregates as a user writes them, in Python and in SQL, with and without merge."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc


class Spread:
    """The greatest value less the least, with merge."""

    def initialize(self) -> tuple[float, float]:
        return float("inf"), float("-inf")

    def iterate(self, state: tuple[float, float], values: pa.Array) -> tuple[float, float]:
        bounds = pc.min_max(values).as_py()
        if bounds["min"] is None:
            return state
        return self.merge(state, (bounds["min"], bounds["max"]))

    def merge(self, state: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
        return min(state[0], other[0]), max(state[1], other[1])

    def terminate(self, state: tuple[float, float]) -> float | None:
        return state[1] - state[0] if state[0] <= state[1] else None


class Steps:
    """How often a value is greater than the one before it in time: it needs all values in order, so it has no merge."""

    def initialize(self) -> int:
        return 0

    def iterate(self, state: int, values: pa.Array) -> int:
        known = [value for value in values.to_pylist() if value is not None]
        return state + sum(after > before for before, after in pairwise(known))

    def terminate(self, state: int) -> int:
        return state


DECLARED = """
CREATE AGGREGATE spread(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'tests.property.user_aggregates:Spread';
CREATE AGGREGATE steps(BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS 'tests.property.user_aggregates:Steps';
CREATE AGGREGATE myavg(next DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS
  INITIALIZE (total = 0.0, n = 0) ITERATE (total = total + next, n = n + 1)
  MERGE (total = total + other.total, n = n + other.n) TERMINATE total / n;
CREATE AGGREGATE weighed(next BIGINT) RETURNS BIGINT LANGUAGE SQL AS
  INITIALIZE (total = 0) ITERATE (total = total * 2 + next) TERMINATE total;
"""
