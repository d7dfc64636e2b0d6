"""Functions of a user that take their time, and tell a test when they are called."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

import millrace as mr

on_call: Callable[[int], None] = lambda value: None  # noqa: E731


def noted(value: int) -> int:
    """The value, after longer than a step of such functions is to take."""
    time.sleep(0.006)
    on_call(value)
    return value


@mr.columns
def noted_columns(values: pa.Array) -> pa.Array:
    """The values."""
    time.sleep(0.006)
    on_call(len(values))
    return values
