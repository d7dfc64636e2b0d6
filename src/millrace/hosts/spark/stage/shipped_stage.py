"""A stage as Spark ships it: what the stage needs is loaded only where rows come.

At the start of every query Spark runs a Python process that asks each stage which state it keeps. This package and
pandas are a second of imports, for the name of one map.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from millrace.hosts.spark.stage.budget import TriggerPace
    from millrace.hosts.spark.stage.stage import Stage

SEGMENTS = ("segments", "op string, part long", "blob binary")
"""The name, key and value of the state, which Spark does not let change."""


class ShippedStage(StatefulProcessor):
    """What `Stage` is made of, and `Stage` itself once a bucket has rows."""

    _stage: Stage | None

    def __init__(
        self, folder: str, buckets: Sequence[int], *, level: int, last: bool, pace: TriggerPace | None = None
    ) -> None:
        self._given: dict[str, Any] = {"folder": folder, "buckets": buckets, "level": level, "last": last, "pace": pace}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task, and once per query for the names of its state."""
        self._state, self._stage = handle.getMapState(*SEGMENTS), None

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Called once per micro-batch with all exchange rows of a bucket."""
        if self._stage is None:
            # Imported here: see above.
            from millrace.hosts.spark.stage.stage import Stage

            self._stage = Stage(self._state, **self._given)
        return self._stage.work(int(key[0]), rows)

    def close(self) -> None:
        """Called at the end of a task."""
