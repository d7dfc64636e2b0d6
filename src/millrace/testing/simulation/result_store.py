"""Where the results of a simulated network go, and how they are read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from millrace.hosts.sinks.sinks import results_in
from millrace.plan.nodes.query_network import Query

RESULT_STORE = "millrace.testing.simulation.result_store:ResultStore"
Row = dict[str, Any]


class ResultStore:
    """A store outside of the run that takes each epoch once, as a database would."""

    kept: ClassVar[dict[str, dict[int, pa.Table]]] = {}
    """By path the rows of each epoch."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        self._epochs = self.kept.setdefault(options["path"], {})
        self._schema = schema

    def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Keep an epoch, unless it is there."""
        rows = pa.Table.from_batches(batches, self._schema)
        if not self._epochs.setdefault(epoch, rows).equals(rows):
            raise AssertionError(f"epoch {epoch} was written again with other rows")

    def close(self) -> None:
        """Nothing is held."""


def results_of(query: Query) -> list[Row]:
    """All results of a query, in order of their epochs."""
    options = query.sink.connector.options
    if query.sink.connector.format == "python":
        epochs = ResultStore.kept.get(options["path"], {})
        return [row for epoch in sorted(epochs) for row in epochs[epoch].to_pylist()]
    return [row for path in results_in(Path(options["path"])) for row in pq.read_table(path).to_pylist()]


def forget(folder: Path) -> None:
    """Forget what was kept for a folder."""
    for path in [each for each in ResultStore.kept if Path(each).is_relative_to(folder)]:
        del ResultStore.kept[path]
