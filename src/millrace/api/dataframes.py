"""Streaming DataFrames of Spark as streams of a network: what the declaration takes from their schema.

Spark itself is not imported here: whoever has a DataFrame has it, and nobody else needs it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from millrace.errors import RequestError

_TYPES = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "varchar": "STRING",
    "char": "STRING",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
}
"""By Spark's name the SQL type of a stream's column."""


class Frame(Protocol):
    """A DataFrame of Spark, as far as a declaration looks at it."""

    @property
    def isStreaming(self) -> bool: ...

    @property
    def schema(self) -> Any: ...


def is_frame(value: object) -> TypeGuard[Frame]:
    """Whether something is a DataFrame of Spark, of whichever kind of session.

    >>> is_frame("v INT"), is_frame([])
    (False, False)
    """
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql") for kind in type(value).mro())


def frame_columns(name: str, frame: Frame) -> str:
    """The columns of a DataFrame as CREATE STREAM has them."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {_type(name, field)}" for field in frame.schema.fields)


def check_frame(name: str, frame: Frame) -> None:
    """Refuse a DataFrame that is not a stream."""
    if not frame.isStreaming:
        raise RequestError(
            f'stream "{name}" was given a DataFrame that is not streaming',
            hint="Make it with spark.readStream instead of spark.read, or feed its rows: source=df.toArrow().",
        )


def spark_session(master: str = "local[*]", *, settings: Mapping[str, str] | None = None) -> Any:
    """A Spark session to make DataFrames with, set as a run needs it: the one of this process, or a new one.

    Runs use the session that is there, and leave it open. Its time zone is UTC, and its streaming sources have names.
    """
    # Imported here: who has no DataFrame need not have Spark.
    from millrace.hosts.spark.session.session import open_session, prepared, running_session

    running = running_session()
    if running is not None:
        return prepared(running)
    log = Path(tempfile.mkdtemp(prefix="millrace-session-")) / "spark.log"
    return open_session(master, log_file=log, settings=settings or {}, reads_rows=True)


def _type(stream: str, field: Any) -> str:
    kind = _TYPES.get(field.dataType.typeName())
    if kind is None:
        raise RequestError(
            f'column "{field.name}" of stream "{stream}" is {field.dataType.simpleString()}, which no stream has',
            hint="Cast the column, drop it, or select what you need of it before: df.select(...).",
        )
    return kind
