"""Results into any store, each once: the protocol of a sink that a user writes.

Rules:
- An epoch is a checkpoint of the local host or a micro-batch of Spark. Epochs only grow; one without rows is left out.
- One process calls a writer, one epoch after the other.
- An epoch is given until it has been taken: after a kill, or an error, the last one is given again with the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa


class Writer(Protocol):
    """Takes the rows of one query, an epoch at a time.

    Name such a class in SQL, `CREATE SINK s TO python OPTIONS (writer 'package.module:Class', table 'counts')`, or in
    Python, `net.query("q", relation, sink="python", writer=Class, table="counts")`. It need not inherit from this one.

    >>> class Kept:
    ...     epochs: dict[tuple[str, str, int], list[pa.RecordBatch]] = {}
    ...
    ...     def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
    ...         self.key = options["run"], query
    ...
    ...     def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
    ...         self.epochs.setdefault((*self.key, epoch), list(batches))
    ...
    ...     def close(self) -> None: ...
    >>> writer: Writer = Kept({"run": "7a"}, pa.schema([("n", pa.int64())]), "q")
    >>> for attempt in range(2):
    ...     writer.write(0, iter([pa.record_batch({"n": [1, 2]})]))
    >>> [batch.num_rows for batch in Kept.epochs["7a", "q", 0]]
    [2]
    """

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        """Open the store for a query whose results have these columns.

        `options` are those of the sink but for `writer`, and `run`: a name that a checkpoint keeps for all its life.
        Epochs of one run and query do not come back; those of another run begin anew.
        """

    def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Make all rows of an epoch visible at once.

        A second call for the same epoch must change nothing, whatever happened to the first: it may have come to
        nothing, or to everything but its return.
        """

    def close(self) -> None:
        """Let go of the store. Not called after a kill; what it raises is of no consequence."""
