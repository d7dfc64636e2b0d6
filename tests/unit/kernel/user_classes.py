"""Classes as users write them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Total:
    """Sums, and merges; a result may be a scalar of Arrow's."""

    def initialize(self) -> float:
        return 0.0

    def iterate(self, state: float, column: pa.Array) -> float:
        return state + (pc.sum(column).as_py() or 0.0)

    def merge(self, state: float, other: float) -> float:
        return state + other

    def terminate(self, state: float) -> pa.Scalar:
        return pa.scalar(state)


class Joined:
    """Texts in order of time, which cannot be merged."""

    def initialize(self) -> list[Any]:
        return []

    def iterate(self, state: list[Any], column: pa.Array) -> list[Any]:
        return state + column.to_pylist()

    def terminate(self, state: list[Any]) -> str:
        return ",".join(str(value) for value in state)


class Failing(Total):
    def iterate(self, state: float, column: pa.Array) -> float:
        raise ZeroDivisionError("by design")


class Unlike(Total):
    def terminate(self, state: float) -> Any:
        return "text"


class Lacking:
    def initialize(self) -> int:
        return 0


class Outer:
    Inner = Total


class Fleeting(Total):
    """Has a state that cannot be pickled."""

    def iterate(self, state: Any, column: pa.Array) -> Any:
        return (value for value in column)
