"""A source in memory, whose partitions a test fills: what a connector of a user's own looks like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from millrace.connectors.source import PartitionSpan, Source, SourcePiece, Unreachable
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Stream

SHELVES: dict[str, dict[str, list[int]]] = {}
"""Numbers by partition, by the option `shelf`."""
REMOVED: dict[str, dict[str, int]] = {}
"""How many of the first numbers of a partition are gone, by shelf."""
DOWN: set[str] = set()
"""Shelves that do not answer."""


class Shelf(Source):
    """Gives numbers; the position of one is how many come before it."""

    def spans(self) -> dict[str, PartitionSpan]:
        shelf = self.options["shelf"]
        if shelf in DOWN:
            raise Unreachable(f'the shelf "{shelf}" does not answer', hint="Put it up.")
        removed = REMOVED.get(shelf, {})
        return {name: PartitionSpan(removed.get(name, 0), len(all_)) for name, all_ in SHELVES[shelf].items()}

    def read(self, partition: str, start: int, stop: int) -> Iterator[SourcePiece]:
        numbers = SHELVES[self.options["shelf"]][partition]
        for at in range(start, stop, 3):
            end = min(at + 3, stop)
            columns: dict[str, Any] = {
                "n": pa.array(numbers[at:end], pa.int64()),
                "ts": pa.array([number * 1_000_000 for number in numbers[at:end]], pa.timestamp("us")),
            }
            rows = pa.record_batch([columns[name] for name in self.schema.names], schema=self.schema)
            yield SourcePiece(partition, rows, end)


def fill(shelf: str, partitions: Mapping[str, list[int]]) -> None:
    """Put numbers on a new shelf."""
    SHELVES[shelf] = {name: list(numbers) for name, numbers in partitions.items()}
    REMOVED.pop(shelf, None)
    DOWN.discard(shelf)


def stream_text(shelf: str, *, clauses: str = "", options: str = "") -> str:
    return (
        f"CREATE STREAM s (n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {clauses} "
        f"FROM python OPTIONS (source 'tests.unit.connectors.shelf:Shelf', shelf '{shelf}' {options});"
    )


def stream_of(shelf: str, *, clauses: str = "", options: str = "") -> Stream:
    """A stream that reads a shelf."""
    text = stream_text(shelf, clauses=clauses, options=options)
    return parse_network(f"{text} SELECT n FROM s;").streams()[0]
