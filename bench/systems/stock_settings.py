"""The settings that stock Spark is given, and those among which the best are looked for.

Rules:
- What is good for every query is given to every query (`ALWAYS`): more heap than all processes of ours hold together,
  the collector for throughput, more memory for RocksDB, which has 8 MB of block cache by default, and of the settings
  of our own session those that concern Spark's part of the work. Whole-stage code generation, both
  Java compilers and adaptive execution, which ours does without, stay on: here they pay.
- What is good for some queries is tried (`Variant`): the state store, RocksDB's changelog, the format of a join's
  state, and the number of shuffle partitions.
- Batches without rows stay on: without them the last results would never leave. Asynchronous progress tracking is for
  queries without state.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bench.systems.engines import HDFS, ROCKSDB

ALWAYS = {
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.locality.wait": "0",
    "spark.shuffle.compress": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.stateStore.rocksdb.blockCacheSizeMB": "512",
    "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB": "128",
}
STORES = {"RocksDB": ROCKSDB, "HDFS-backed": HDFS}
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
_JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"


@dataclass(frozen=True)
class Variant:
    """What a query is tried with."""

    store: str
    partitions: int
    changelog: bool = False
    join_format: int = 2

    @property
    def system(self) -> str:
        """The name of the system in the table."""
        return f"stock Spark, {self.store}"

    def label(self, *, join: bool) -> str:
        """What is special about it."""
        parts = [f"{self.partitions} partitions"]
        if self.store == "RocksDB":
            parts.append(f"changelog {'on' if self.changelog else 'off'}")
        return ", ".join([*parts, *([f"join format {self.join_format}"] if join else [])])

    def data(self) -> dict[str, object]:
        """As plain data."""
        return asdict(self)

    def settings(self) -> dict[str, str]:
        """In Spark's words; a session can change all of them."""
        return {
            **STORES[self.store],
            _CHANGELOG: str(self.changelog).lower(),
            _PARTITIONS: str(self.partitions),
            _JOIN_FORMAT: str(self.join_format),
        }


COUNTS = (
    *(Variant("HDFS-backed", partitions) for partitions in (2, 4)),
    *(Variant("RocksDB", partitions, changelog) for partitions in (2, 4) for changelog in (True, False)),
)
"""What a count is tried with."""
JOINS = (
    *(Variant("HDFS-backed", partitions) for partitions in (2, 4)),
    *(Variant("RocksDB", 2, True, join_format) for join_format in (2, 3, 4)),
    Variant("RocksDB", 2, False, 4),
    *(Variant("RocksDB", 4, changelog, 4) for changelog in (True, False)),
)
"""What a join is tried with; formats 3 and 4 need RocksDB, and format 1 is refused."""
LIVE = (Variant("HDFS-backed", 2), Variant("RocksDB", 2, True))
"""What a live run with little state is given, without a trial."""
