"""Streaming DataFrames of Spark as streams of a network: their columns, and the session that makes them.

Spark itself is not imported with this module: a program that has a DataFrame has imported it already.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from millrace.api.sql_text.query_text import quoted
from millrace.api.terminal.phase_line import waiting
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
"""The SQL type of a stream's column by Spark's name."""


class SparkFrame(Protocol):
    """The parts of a Spark DataFrame that a declaration uses."""

    @property
    def isStreaming(self) -> bool: ...

    @property
    def schema(self) -> Any: ...


def is_frame(value: object) -> TypeGuard[SparkFrame]:
    """True if something is a DataFrame of Spark, classic or Connect.

    >>> is_frame("v INT"), is_frame([])
    (False, False)
    """
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql") for kind in type(value).mro())


def frame_columns(name: str, frame: SparkFrame) -> str:
    """The columns of a DataFrame as CREATE STREAM lists them."""
    return ", ".join(f"{quoted(field.name)} {_type(name, field)}" for field in frame.schema.fields)


def check_frame(name: str, frame: SparkFrame) -> None:
    """Refuse a DataFrame that is not a stream."""
    if not frame.isStreaming:
        raise RequestError(
            f'stream "{name}" was given a DataFrame that is not streaming',
            hint="Make it with spark.readStream instead of spark.read, or feed its rows: source=df.toArrow().",
        )


def spark_session(master: str = "local[*]", *, settings: Mapping[str, str] | None = None) -> Any:
    """A Spark session to make DataFrames with, with the settings that a run needs: that of this process, or a new one.

    Runs use the session of their process and leave it open. Its time zone is UTC, and its streaming sources have names.
    """
    # Imported here: only programs with DataFrames need Spark.
    from millrace.hosts.spark.session.session import open_session, prepared, running_session

    running = running_session()
    if running is not None:
        return prepared(running)
    log = Path(tempfile.mkdtemp(prefix="millrace-session-")) / "spark.log"
    with waiting("starting Spark", sys.stderr):
        return open_session(master, log_file=log, settings=settings or {}, reads_rows=True)


def _type(stream: str, field: Any) -> str:
    kind = _TYPES.get(field.dataType.typeName())
    if kind is None:
        found = field.dataType.simpleString()
        raise RequestError(
            f'column "{field.name}" of stream "{stream}" is {found}, which streams do not support',
            hint="Cast or drop the column, or select the parts that you need: df.select(...).",
        )
    return kind
