"""Streams, tables and sinks as they are declared: where rows come from, and where results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from millrace.kernel.progress.time_contract import LATE, QUARANTINED, TimeContract


@dataclass(frozen=True)
class Connector:
    """Where rows come from or go to: a format and its options (keys in lower case)."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def knows_columns_by_place(self) -> bool:
        """True if its columns have no names in the files: none of those that are declared can be left out."""
        return self.format == "csv" and self.options.get("header", "true").lower() == "false"


@dataclass(frozen=True)
class Replay:
    """`REPLAY BY column [SPEED x]`: a file is replayed by its arrival column."""

    column: str
    speed: float = 1.0


@dataclass(frozen=True)
class Stream:
    """A declared stream: columns, time contract, connector, and the names of its late and its quarantined rows.

    `update_key` is None for a plain stream. For an update stream it names the columns whose rows of equal values update
    each other; () if all rows do. `options` are those of the queues of queries that read it. `partition_table` is the
    table that lists its partitions, if its time contract names one.
    """

    name: str
    schema: pa.Schema
    time: TimeContract
    connector: Connector
    replay: Replay | None = None
    late_into: str | None = None
    # Names of operators are made of the repr, and what an operator computes does not depend on these.
    update_key: tuple[str, ...] | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    quarantine_into: str | None = field(default=None, repr=False)
    partition_table: Table | None = field(default=None, repr=False)

    def aside(self) -> dict[str, str]:
        """By outlet the names under which rows that were set aside can be read."""
        names = {LATE: self.late_into, QUARANTINED: self.quarantine_into}
        return {outlet: name for outlet, name in names.items() if name is not None}


@dataclass(frozen=True)
class Table:
    """A declared table: reference data that is read as a whole, and again at every `refresh` microseconds.

    No two rows have equal values in the columns of its primary key, and none has a null there.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    # What a join with it computes does not depend on these.
    connector: Connector = field(repr=False)
    refresh: int | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Sink:
    """A declared sink; the default is memory."""

    name: str
    connector: Connector
