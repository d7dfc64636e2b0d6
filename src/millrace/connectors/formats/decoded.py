"""What a decoder makes of the values of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.connectors.files.conversion import Conversion
from millrace.connectors.files.file_blocks import Fault

Positions = npt.NDArray[np.int64]
Values = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Decoded:
    """Good rows, which of the values each was, and why another value is none."""

    rows: pa.RecordBatch
    kept: Positions
    explain: Callable[[int], Fault]
    """What is wrong with the value of that number, which was not kept."""
    no_rows: Positions = field(default_factory=lambda: np.empty(0, np.int64))
    """The values that stand for no row, and are not at fault."""


class Decoder(Protocol):
    """Makes rows of the values of messages."""

    def decode(self, values: Values) -> Decoded:
        """The rows of some values, in their order."""


def converted(columns: Sequence[pa.Array], numbers: Positions, plan: Conversion, faults: dict[int, Fault]) -> Decoded:
    """The rows of the columns of some values, by their numbers; `faults` says what is wrong with the others."""
    rows, fitting = plan.good_rows(columns)

    def explain(number: int) -> Fault:
        if number in faults:
            return faults[number]
        column, value, reason = plan.blame(columns, int(np.searchsorted(numbers, number)))
        return Fault("", reason, value, column)

    return Decoded(rows, numbers[fitting], explain)


def no_fault(number: int) -> Fault:
    """No value is at fault."""
    raise AssertionError(f"value {number} was kept")
