"""Joins and sequences of finished inputs, by nested loops: every row is held against every other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from millrace.kernel.joins.sides import RowsSide, Side
from millrace.plan.nodes.join_nodes import AnyJoin, Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from tests.reference_values import TIME, Row, micros, nulls_first, values_of

Rows = list[Row]


def joined(node: AnyJoin, inputs: Sequence[Rows]) -> Rows:
    """What a join gives for the rows of its inputs."""
    match node:
        case Join():
            return _by_time(node, inputs)
        case RowsJoin():
            return _by_rows(node, *inputs)
        case Following(mode="recent"):
            return _recent(node, *inputs)
        case Following():
            return _chronicle(node, *inputs)


def _by_time(node: Join, inputs: Sequence[Rows]) -> Rows:
    """The combinations of a row of each input of which all pairs match; then rows that are part of none."""
    found: list[Rows] = [[]]
    for rows, side in zip(inputs, node.sides, strict=True):
        found = [
            [*parts, row]
            for parts in found
            for row in rows
            if all(_match(*each, row, side) for each in zip(parts, node.sides, strict=False))
        ]
    found = _passing(node, found)
    matched = {id(row) for parts in found for row in parts}
    alone = [
        {**_nulls(node), **row}
        for rows, side in zip(inputs, node.sides, strict=True)
        for row in rows
        if side.outer and id(row) not in matched
    ]
    return [{**_merged(parts), TIME: _time(node, parts)} for parts in found] + [_in_order(node, row) for row in alone]


def _match(one: Row, side: Side, other: Row, other_side: Side) -> bool:
    return (
        _equal(one, side.keys, other, other_side.keys)
        and other[TIME] <= _limit(one, side)
        and one[TIME] <= _limit(other, other_side)
    )


def _limit(row: Row, side: Side) -> float:
    """The last time at which something can match a row; updates may match however old they are."""
    limits: list[float] = [] if side.ahead is None else [row[TIME] + side.ahead]
    if side.until is not None:
        limits.append(-math.inf if row[side.until] is None else micros(row[side.until]))
    return min(limits, default=math.inf)


def _equal(one: Row, keys: Sequence[str], other: Row, other_keys: Sequence[str]) -> bool:
    """Whether keys are equal; null equals nothing."""
    pairs = [(one[name], other[other_name]) for name, other_name in zip(keys, other_keys, strict=True)]
    return all(mine is not None and mine == theirs for mine, theirs in pairs)


def _time(node: Join, parts: list[Row]) -> int:
    times: list[int] = [row[TIME] for row in parts]
    if isinstance(node.time, int):
        return times[node.time]
    return max(times) if node.time == "max" else min(times)


def _by_rows(node: RowsJoin, first: Rows, second: Rows) -> Rows:
    """The pairs of which the earlier row is in its side's window at the time of the later one."""
    first, second = (_ordered(rows, each) for rows, each in zip((first, second), node.inputs, strict=True))
    one_side, other_side = node.sides
    found = [
        [one, other]
        for one in first
        for other in second
        if _equal(one, one_side.keys, other, other_side.keys)
        and (_kept(one, first, one_side, other[TIME]) or _kept(other, second, other_side, one[TIME]))
    ]
    return [{**_merged(parts), TIME: max(row[TIME] for row in parts)} for parts in _passing(node, found)]


def _kept(row: Row, rows: Rows, side: RowsSide, now: int) -> bool:
    """Whether a row is in its side's window when it is `now`; `rows` are all of that side, in order."""
    if row[TIME] > now or (side.rows is None and side.range is None):
        return False
    if side.range is not None and row[TIME] < now - side.range:
        return False
    if side.rows is None:
        return True
    own = [each for each in rows if all(each[name] == row[name] for name in side.partition) and each[TIME] <= now]
    return any(each is row for each in own[-side.rows :])


def _recent(node: Following, rows: Rows, earlier: Rows) -> Rows:
    """Each row with the last one before it."""
    earlier = _ordered(earlier, node.inputs[1])
    return _followed(node, rows, lambda row: [each for each in earlier if _precedes(node, each, row)][-1:])


def _chronicle(node: Following, rows: Rows, earlier: Rows) -> Rows:
    """Each row, in their order, with the first one before it that is not yet used."""
    unused = _ordered(earlier, node.inputs[1])

    def taken(row: Row) -> Rows:
        found = [each for each in unused if _precedes(node, each, row)][:1]
        unused[:] = [each for each in unused if not any(each is one for one in found)]
        return found

    return _followed(node, _ordered(rows, node.inputs[0]), taken)


def _followed(node: Following, rows: Rows, partner: Callable[[Row], Rows]) -> Rows:
    found = [(row, partner(row)) for row in rows]
    return [
        _in_order(node, {**_nulls(node), **_merged(partners), **row})
        for row, partners in found
        if partners or node.outer
    ]


def _precedes(node: Following, earlier: Row, row: Row) -> bool:
    ours, theirs = node.keys
    behind = row[TIME] - earlier[TIME]
    return (
        _equal(row, ours, earlier, theirs)
        and behind >= (1 if node.strict else 0)
        and (node.within is None or behind <= node.within)
    )


def _ordered(rows: Rows, node: Node) -> Rows:
    """By time; equal times by entry, which is the order of the rows of a stream, or else by contents."""
    if not node.is_prefix:
        rows = sorted(rows, key=lambda row: [nulls_first(row[name]) for name in node.schema.names])
    return sorted(rows, key=lambda row: row[TIME])


def _passing(node: Join | RowsJoin, found: list[Rows]) -> list[Rows]:
    """The combinations of rows for which what else is asked is true."""
    if node.residual is None:
        return found
    answers = values_of(node.residual, [_merged(parts) for parts in found], node.schema)
    return [parts for parts, answer in zip(found, answers, strict=True) if answer is True]


def _merged(parts: Sequence[Row]) -> Row:
    return {name: value for part in parts for name, value in part.items() if name != TIME}


def _nulls(node: AnyJoin) -> dict[str, Any]:
    return dict.fromkeys(node.schema.names)


def _in_order(node: AnyJoin, row: Row) -> Row:
    return {**{name: row[name] for name in node.schema.names}, TIME: row[TIME]}
