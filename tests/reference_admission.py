"""What becomes of each row at the edge of its stream, worked out from all rows before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

import pyarrow as pa

from millrace.kernel.progress.time_contract import TimeContract
from tests.reference_values import TIME, Row, micros, value_of

PROMISE = "promise of the row"
Verdict = Literal["admitted", "late", "quarantined"]


def admitted(contract: TimeContract, rows: Iterable[Row], schema: pa.Schema) -> list[tuple[Verdict, int | None]]:
    """What becomes of each row at the edge of an external stream, and the stream's bound after it."""
    history: list[Row] = []
    verdicts: list[tuple[Verdict, int | None]] = []
    bound: int | None = None
    for row in rows:
        time = None if row[contract.column] is None else micros(row[contract.column])
        if time is None or _lacks_an_attribute(row, contract) or _from_the_future(time, history, contract):
            verdicts.append(("quarantined", bound))
            continue
        on_time = _on_time(time, row, history, bound, contract)
        history.append({**row, TIME: time})
        history[-1][PROMISE] = _promise(history, contract, schema)
        allowed = _allowed(history, contract)
        if allowed is not None and (bound is None or allowed > bound):
            bound = allowed
        verdicts.append(("admitted" if on_time else "late", bound))
    return verdicts


def _lacks_an_attribute(row: Row, contract: TimeContract) -> bool:
    return any(row[name] is None for name, _ in contract.also)


def _on_time(time: int, row: Row, history: list[Row], bound: int | None, contract: TimeContract) -> bool:
    """Whether a row is above its stream's bound, its group's promises, and the bound of every further attribute."""
    own = [each[PROMISE] for each in history if contract.per and _group(each, contract) == _group(row, contract)]
    bounds = [bound, *own]
    if any(each is not None and time < each for each in bounds):
        return False
    return all(
        micros(row[name]) >= max((micros(each[name]) for each in history), default=micros(row[name])) - disorder
        for name, disorder in contract.also
    )


def _group(row: Row, contract: TimeContract) -> tuple[Any, ...]:
    return tuple(row[name] for name in contract.per)


def _from_the_future(time: int, history: list[Row], contract: TimeContract) -> bool:
    if contract.max_future_skew is None or not history:
        return False
    return time > max(row[TIME] for row in history) + contract.max_future_skew


def _promise(history: list[Row], contract: TimeContract, schema: pa.Schema) -> int | None:
    """What the last row says that no later row goes below."""
    row = history[-1]
    if contract.punctuation is None:
        return None
    said = value_of(contract.punctuation, row, schema)
    promise = (row[TIME] if said else None) if said is None or isinstance(said, bool) else micros(said)
    return None if promise is not None and _from_the_future(promise, history, contract) else promise


def _allowed(history: list[Row], contract: TimeContract) -> int | None:
    """The bound that the rows so far allow for the whole stream."""
    if contract.per:
        return None
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
