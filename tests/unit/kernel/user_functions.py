"""Functions as a user writes them; those that are told apart by what was called note it."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import millrace as mr

called: list[tuple[Any, ...]] = []
"""What `price` and `columns_price` were called with."""


def price(amount: float | None, kind: str | None) -> float | None:
    called.append((amount, kind))
    if amount is None or kind is None:
        return None
    return amount * len(kind)


@mr.columns
def columns_price(amount: pa.Array, kind: pa.Array) -> pa.Array:
    called.append((len(amount), len(kind)))
    return pc.multiply(amount, pc.cast(pc.utf8_length(kind), pa.float64()))


def positive(value: float) -> float:
    if value <= 0:
        raise ValueError("it must be positive")
    called.append((value,))
    return value


def half(value: int) -> float:
    return value / 2


def echo(value: Any) -> Any:
    return value


def word(value: int) -> Any:
    return "seven" if value == 7 else value


def next_day(value: datetime.datetime) -> datetime.datetime:
    return value + datetime.timedelta(days=1)


@mr.columns
def doubled(values: pa.Array) -> Any:
    return np.asarray(values) * 2


@mr.columns
def first_only(values: pa.Array) -> pa.Array:
    return values.slice(0, 1)


@mr.columns
def as_text(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.string())


@mr.columns
def listed(values: pa.Array) -> Any:
    return values.to_pylist()


@mr.columns
def halves(values: pa.Array) -> pa.Array:
    return pc.divide(pc.cast(values, pa.float64()), 2.0)


@mr.columns
def failing(values: pa.Array) -> pa.Array:
    raise KeyError("nothing")


class Shop:
    """A place inside a class."""

    @staticmethod
    def tax(value: float | None) -> float | None:
        return None if value is None else value * 0.25


NUMBER = 5
