"""The results that the sinks memory and console keep: the last rows, and how many were dropped before them.

Rules:
- A sink keeps the last `MOST_ROWS` rows of its query, or as many as its option `keep` says; `keep 'all'` keeps all.
- Rows that are not kept any more are counted, and the reader of the rows sees the count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from millrace.errors import RequestError, listed
from millrace.plan.nodes.endpoints import Sink

MOST_ROWS = 1_000_000


class KeptRows:
    """The last rows of a query.

    >>> kept = KeptRows(3)
    >>> kept.append(pa.table({"n": [1, 2]}))
    >>> kept.append(pa.table({"n": [3, 4]}))
    >>> pa.concat_tables(kept).column("n").to_pylist(), kept.dropped
    ([2, 3, 4], 1)
    """

    def __init__(self, most: int | None = MOST_ROWS) -> None:
        self._most = most
        self._tables: deque[pa.Table] = deque()
        self._rows = 0
        self.dropped = 0
        """How many rows are not kept any more."""

    def append(self, rows: pa.Table) -> None:
        """Keep rows, and drop the oldest that are too many."""
        self._tables.append(rows)
        self._rows += rows.num_rows
        while self._most is not None and self._rows > self._most:
            first, excess = self._tables[0], self._rows - self._most
            if first.num_rows > excess:
                self._tables[0] = first.slice(excess)
            else:
                self._tables.popleft()
            gone = min(excess, first.num_rows)
            self._rows -= gone
            self.dropped += gone

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[pa.Table]:
        return iter(list(self._tables))


def kept_rows(sink: Sink) -> KeptRows:
    """A place for the results of a query whose sink is memory or console, as large as its options say."""
    options = dict(sink.connector.options)
    keep = options.pop("keep", str(MOST_ROWS))
    if sink.connector.format == "console" and options.get("limit", "0").isdigit() and options.get("limit") != "0":
        options.pop("limit", None)
    if options:
        raise RequestError(
            f'the sink "{sink.name}" does not take {listed([f"{key} {value}" for key, value in options.items()])}',
            hint="memory takes keep '1000' or keep 'all'; console also limit '10', a number of rows.",
        )
    if keep.lower() == "all":
        return KeptRows(None)
    if not keep.isdigit() or int(keep) < 1:
        raise RequestError(
            f'keep is a number of rows or all, not "{keep}"',
            hint=f"Write keep '1000', or keep 'all' in sink {sink.name}.",
        )
    return KeptRows(int(keep))
