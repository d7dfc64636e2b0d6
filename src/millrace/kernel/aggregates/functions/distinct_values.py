"""Aggregates of the distinct values: exact count, sum and mean, and an approximate count."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.aggregates.functions.basic_aggregates import ValueCount
from millrace.kernel.aggregates.functions.function import (
    AggregateFunction,
    Columns,
    Parameter,
    elements,
    listed,
    unlisted,
    valid,
)
from millrace.kernel.columns.comparison import canonical, ordinals
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.hashing import hashes
from millrace.kernel.columns.integers import Integers, distinct

_REGISTERS = 2**12
_REST = 64 - 12
"""The bits of a hash that are not the register's number."""
_RANK_BITS = 6


class DistinctValues(AggregateFunction):
    """An aggregate of the distinct values that are not null. A partial is the list of them."""

    partial_bytes = 256

    def __init__(self, over: Callable[..., AggregateFunction], name: str, *parameters: Parameter) -> None:
        super().__init__(name)
        self.over = over(name.removesuffix("_distinct"), *parameters)
        self.takes = ("a comparable column",) if isinstance(self.over, ValueCount) else self.over.takes

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return self.over.result_type(arguments)

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (values,) = valid(groups, *arguments)
        return [_distinct(rows, values)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        rows, (values,) = unlisted(groups, partials)
        return [_distinct(rows, values)]

    def result(self, partials: Columns) -> pa.Array:
        return self.over.result(self.over.of_rows(*elements(partials)))


def numbered(values: pa.Array) -> tuple[Integers, pa.Array]:
    """The number of each value among the distinct ones, and these."""
    if pa.types.is_nested(values.type):
        _, first, codes = np.unique(ordinals(values), return_index=True, return_inverse=True)
        return codes, values.take(pa.array(first))
    encoded = canonical(values).dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary


def _distinct(groups: Groups, values: pa.Array) -> pa.Array:
    """A list of the distinct values of each group."""
    codes, found = numbered(values)
    size = max(len(found), 1)
    pairs = distinct(groups.codes * size + codes)
    (lists,) = listed(Groups(pairs // size, groups.size), [found.take(pa.array(pairs % size))])
    return lists


class ApproximateDistinct(AggregateFunction):
    """How many distinct values there are, with a standard error of 1.6 % (HyperLogLog).

    A partial is the list of the registers in use with their ranks, in order, so that it is the same for any way of
    merging. The count is read off as in Ertl 2017 (arXiv:1702.01284), which needs no correction for small sets.
    """

    partial_bytes = 2048
    takes = ("a plain column",)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.int64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, values = valid(groups, *arguments)
        return [_greatest(rows, _registers(hashes(values)))]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        rows, (registers,) = unlisted(groups, partials)
        return [_greatest(rows, registers.to_numpy())]

    def result(self, partials: Columns) -> pa.Array:
        groups, (registers,) = elements(partials)
        ranks = registers.to_numpy() % 2**_RANK_BITS
        unused = 1 - groups.counts / _REGISTERS
        weight = groups.sums(np.ldexp(1.0, -ranks)) + _REGISTERS * _of_unused(unused)
        return pa.array(np.rint(_REGISTERS**2 / (2 * math.log(2)) / weight).astype(np.int64))


def _registers(found: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The register of each hash, and its rank: the place of the first bit that is set in the rest."""
    number = (found >> np.uint64(_REST)).astype(np.int64)
    rest = (found & np.uint64(2**_REST - 1)).astype(np.float64)
    rank = _REST + 1 - np.frexp(rest)[1]
    return (number << _RANK_BITS) | rank


def _greatest(groups: Groups, registers: npt.NDArray[np.int64]) -> pa.Array:
    """The registers of each group in order, each with its greatest rank."""
    room = _REGISTERS << _RANK_BITS
    found = np.sort(groups.codes * room + registers)
    owner = found >> _RANK_BITS
    found = found[np.append(owner[1:] != owner[:-1], True)[: len(found)]]
    (lists,) = listed(Groups(found // room, groups.size), [pa.array(found % room, pa.int32())])
    return lists


def _of_unused(share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What registers not in use weigh: x + sum of x ** (2 ** k) * 2 ** (k - 1), infinite at one."""
    total, power, factor = share.copy(), share, 1.0
    # x is at most 1 - 1 / 4096 below one: its power is nothing after twenty squarings.
    for _ in range(20):
        power = power * power
        total += power * factor
        factor *= 2
    return np.where(share == 1, np.inf, total)
