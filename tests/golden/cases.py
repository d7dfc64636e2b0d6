"""Golden queries: a folder each, with `query.sql`, `inputs/STREAM.csv`, `plan.txt` and `expected/QUERY.txt`.

A first line `-- error: ...` in the query marks a refusal; its text is in `error.txt`. Of an update query the rows that
are expected are the last of each key.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.connectors.inputs import open_input
from millrace.connectors.stream_input import read_schema
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.updates.queue_placement import key_of
from tests.reference import evaluate, settled

HERE = Path(__file__).parent
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Row = dict[str, Any]


@dataclass(frozen=True)
class Golden:
    """One folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def sql(self) -> str:
        return (self.folder / "query.sql").read_text()

    @property
    def is_refusal(self) -> bool:
        return self.sql.startswith("-- error:")

    @cached_property
    def network(self) -> QueryNetwork:
        return parse_network(self.sql)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def rewrite(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def inputs(self, pieces: int = 1) -> dict[str, list[pa.Table]]:
        """Each stream's rows, cut into pieces of about one size."""
        return {stream.name: _cut(self._rows(stream), pieces) for stream in self.network.streams()}

    def _rows(self, stream: Stream) -> pa.Table:
        path = str(self.folder / stream.connector.options["path"])
        placed = replace(
            stream, connector=Connector(stream.connector.format, {**stream.connector.options, "path": path})
        )
        source, chunks = open_input(placed, list(stream.schema.names), None, None), []
        while (chunk := source.read()) is not None:
            chunks.append(chunk.rows)
        return pa.Table.from_batches(chunks, read_schema(stream, list(stream.schema.names)))


def golden_queries(*, refused: bool) -> list[Golden]:
    found = [Golden(path.parent) for path in sorted(HERE.glob("*/query.sql"))]
    return [each for each in found if each.is_refusal == refused]


def together(goldens: Iterable[Golden]) -> tuple[QueryNetwork, dict[str, list[pa.Table]]]:
    """All queries in one network under the names of their folders, and its inputs; equal streams are shared."""
    queries, inputs, streams = [], {}, {}
    for golden in goldens:
        given = golden.inputs(pieces=3)
        for stream in golden.network.streams():
            rows = given[stream.name]
            assert streams.setdefault(stream.name, stream) == stream, "streams of one name are the same"
            assert inputs.setdefault(stream.name, rows) == rows, "streams of one name hold the same rows"
        queries += [replace(query, name=f"{golden.name}_{query.name}") for query in golden.network.queries]
    return QueryNetwork(tuple(queries)), inputs


def _cut(rows: pa.Table, pieces: int) -> list[pa.Table]:
    size = -(-rows.num_rows // pieces)
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


def reference(golden: Golden) -> dict[str, list[Row]]:
    """What the naive evaluation gives; a stream without times of its own gets one that no answer shows."""
    given = {}
    inputs = golden.inputs()
    for stream in golden.network.streams():
        rows = [row for table in inputs[stream.name] for row in table.to_pylist()]
        if stream.time.kind != "external":
            rows = [{stream.time.column: EPOCH, **row} for row in rows]
        given[stream.name] = rows
    return {
        query.name: evaluate(query, given) if key_of(query) is None else settled(query, given)
        for query in golden.network.queries
    }


def last_answers(golden: Golden, answers: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """The answers, of update queries the last of each key: which of those before were given depends on the load."""
    keys = {query.name: key_of(query) for query in golden.network.queries}
    found: dict[str, list[Row]] = {}
    for query, rows in answers.items():
        key = keys[query]
        last = {tuple(row[name] for name in key): row for row in rows} if key is not None else dict(enumerate(rows))
        found[query] = list(last.values())
    return found


def lines(rows: Iterable[Row]) -> list[str]:
    """Each row as a line of text: text in quotes, fractions to twelve digits."""
    return ["  ".join(f"{name}={_shown(value)}" for name, value in row.items()) for row in rows]


def rendered(answers: Mapping[str, list[Row]]) -> dict[str, list[str]]:
    """The answers as sorted lines."""
    return {query: sorted(lines(rows)) for query, rows in answers.items()}


def _shown(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(sep=" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return f"{value:.12g}"
    return json.dumps(value, ensure_ascii=False, default=str)
