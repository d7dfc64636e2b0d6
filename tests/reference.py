"""A naive evaluation of finished inputs, row by row, written to be obviously right.

It shares with the product the plan's nodes and the scalar functions (checked against DuckDB elsewhere), and nothing
of the kernel: no batches, no panes, no state. What a stream's edge lets in is worked out from all rows before each row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pyarrow as pa

from millrace.kernel.expressions import Expression
from millrace.kernel.progress import TimeContract
from millrace.plan.nodes import Aggregate, Aggregation, Filter, Node, OrderByTime, Project, Query, Scan, Union

Row = dict[str, Any]
TIME = "time of the row"
PROMISE = "promise of the row"


def evaluate(query: Query, inputs: Mapping[str, Iterable[Row]]) -> list[Row]:
    """The result rows of a query over whole inputs."""
    rows = _rows(query.root, inputs)
    return [{name: value for name, value in row.items() if name != TIME} for row in rows]


def _rows(node: Node, inputs: Mapping[str, Iterable[Row]]) -> list[Row]:
    match node:
        case Scan():
            column = node.stream.time.column
            return [{**row, TIME: _micros(row[column])} for row in inputs[node.stream.name] if row[column] is not None]
        case Filter():
            schema = node.input.schema
            return [row for row in _rows(node.input, inputs) if _value(node.predicate, row, schema) is True]
        case Project():
            schema = node.input.schema
            return [
                {**{name: _value(each, row, schema) for name, each in node.columns}, TIME: row[TIME]}
                for row in _rows(node.input, inputs)
            ]
        case Union():
            return [row for each in node.inputs for row in _rows(each, inputs)]
        case OrderByTime():
            return sorted(_rows(node.input, inputs), key=lambda row: row[TIME])
        case Aggregate():
            return _aggregated(node, _rows(node.input, inputs))


def _aggregated(node: Aggregate, rows: list[Row]) -> list[Row]:
    schema = node.input.schema
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        keys = tuple(_value(key, row, schema) for _, key in node.keys)
        for start in _window_starts(row[TIME], node.window.range, node.window.slide):
            groups[(start, *keys)].append(row)
    return [
        {
            "window_start": _timestamp(start),
            "window_end": _timestamp(start + node.window.range),
            **dict(zip([name for name, _ in node.keys], keys, strict=True)),
            **{each.name: _aggregate(each, members, schema) for each in node.aggregations},
            TIME: start,
        }
        for (start, *keys), members in groups.items()
    ]


def _window_starts(time: int, length: int, slide: int) -> list[int]:
    starts = []
    start = time // slide * slide
    while start + length > time:
        starts.append(start)
        start -= slide
    return starts


def _aggregate(aggregation: Aggregation, rows: list[Row], schema: pa.Schema) -> Any:
    if not aggregation.arguments:
        return len(rows)
    values = [value for row in rows if (value := _value(aggregation.arguments[0], row, schema)) is not None]
    match aggregation.function:
        case "count":
            return len(values)
        case "sum":
            return sum(values) if values else None
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)
        case "avg":
            return sum(values) / len(values) if values else None
    raise AssertionError(aggregation.function)


def _value(expression: Expression, row: Row, schema: pa.Schema) -> Any:
    given = {name: [row[name]] for name in schema.names}
    one = pa.RecordBatch.from_pydict(given, schema=schema) if schema.names else pa.record_batch({"": [0]})
    return expression.over(one)[0].as_py()


def _micros(value: Any) -> int:
    return int(pa.scalar(value, pa.timestamp("us", tz="UTC")).cast(pa.int64()).as_py())


def _timestamp(micros: int) -> Any:
    return pa.scalar(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC")).as_py()


def admitted(
    contract: TimeContract, rows: Iterable[Row], schema: pa.Schema
) -> list[tuple[Literal["admitted", "late", "quarantined"], int | None]]:
    """What becomes of each row at the edge of an external stream, and the stream's bound after it."""
    history: list[Row] = []
    verdicts: list[tuple[Literal["admitted", "late", "quarantined"], int | None]] = []
    bound: int | None = None
    for row in rows:
        time = None if row[contract.column] is None else _micros(row[contract.column])
        if time is None or _from_the_future(time, history, contract):
            verdicts.append(("quarantined", bound))
            continue
        on_time = bound is None or time >= bound
        history.append({**row, TIME: time})
        history[-1][PROMISE] = _promise(history, contract, schema)
        allowed = _allowed(history, contract)
        if allowed is not None and (bound is None or allowed > bound):
            bound = allowed
        verdicts.append(("admitted" if on_time else "late", bound))
    return verdicts


def _from_the_future(time: int, history: list[Row], contract: TimeContract) -> bool:
    if contract.max_future_skew is None or not history:
        return False
    return time > max(row[TIME] for row in history) + contract.max_future_skew


def _promise(history: list[Row], contract: TimeContract, schema: pa.Schema) -> int | None:
    """What the last row says that no later row goes below."""
    row = history[-1]
    if contract.punctuation is None:
        return None
    said = _value(contract.punctuation, row, schema)
    promise = (row[TIME] if said else None) if said is None or isinstance(said, bool) else _micros(said)
    return None if promise is not None and _from_the_future(promise, history, contract) else promise


def _allowed(history: list[Row], contract: TimeContract) -> int | None:
    """The bound that the rows so far allow."""
    if contract.rows is not None:
        return max((row[TIME] for row in history[: max(len(history) - contract.rows, 0)]), default=None)
    partitions: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in history:
        own = partitions[tuple(row[name] for name in contract.partitions)]
        if contract.punctuation is None:
            own.append(row[TIME] - contract.disorder)
        elif row[PROMISE] is not None:
            own.append(row[PROMISE])
    return min(map(max, partitions.values())) if all(partitions.values()) else None


def multiset(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Rows in a form in which two multisets of them can be compared; fractions to twelve digits."""
    return sorted((tuple(_comparable(value) for value in row.values()) for row in rows), key=repr)


def _comparable(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value
