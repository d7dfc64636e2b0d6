"""An aggregate that gathers rows, and aggregates many of them at once."""

from __future__ import annotations

from millrace.kernel.aggregates.partials import Partials
from millrace.kernel.elements import ARRIVED, Batch
from millrace.kernel.operator import StoringOperator
from millrace.kernel.state import Changes

_FEW = 2**18
"""Up to so many rows are gathered before they are aggregated, so that single rows cost little."""


class AggregateOperator(StoringOperator):
    """Gathers rows until a subclass settles them: puts them, aggregated, into its stores."""

    holds = True
    noted: tuple[str, ...] = ("timed",)

    def __init__(self, partials: Partials) -> None:
        self.partials = partials
        self._gathered: list[Batch] = []
        self._rows = 0
        """How many rows have been gathered."""
        self._timed = False
        """True if rows carry their arrival: then results have the column too, so that both can meet in a union."""

    def _gather(self, batch: Batch) -> None:
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        self._gathered.append(batch)
        self._rows += len(batch)
        if self._rows >= _FEW:
            self._settle()

    def _settle(self) -> None:
        """Put what has been gathered into the stores."""
        raise AssertionError("an aggregate says what it makes of rows")

    def _take_gathered(self) -> list[Batch]:
        gathered, self._gathered, self._rows = self._gathered, [], 0
        return gathered

    @property
    def held(self) -> int:
        return len(self.stores[0]) + self._rows

    @property
    def held_partials(self) -> int:
        return len(self.stores[0])

    @property
    def state_bytes(self) -> int:
        return super().state_bytes + sum(int(batch.rows.nbytes) for batch in self._gathered)

    def changes(self) -> Changes:
        self._settle()
        return super().changes()
