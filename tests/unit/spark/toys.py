"""A toy network for the plumbing: files of integers in, running sums per bucket out."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from millrace.errors import MalformedRow
from millrace.hosts.spark.buckets import bucket_ids
from millrace.hosts.spark.control import ControlSource
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.files import FilesSource, Look, encode
from millrace.hosts.spark.rows import CONTROL_PORT, EXCHANGE_SCHEMA, OUTPUT, REPORT_OUTPUT, pack
from millrace.hosts.spark.writer import NetworkSink, NetworkWriter

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BUCKETS = bucket_ids(2)
SETTINGS = {"spark.sql.shuffle.partitions": str(len(BUCKETS))}


@dataclass(frozen=True)
class IntegerFiles:
    """A low level: each file's integers go to every bucket, with what was known before."""

    folder: str
    in_sequence: bool = False

    def files(self) -> list[str]:
        return [str(path) for path in sorted(Path(self.folder).glob("*.txt"))]

    def arrived(self, path: str) -> int | None:
        return Path(path).stat().st_ctime_ns // 1000

    def tasks(self, paths: Sequence[str]) -> list[int]:
        return [len(paths)] if self.in_sequence and paths else [1] * len(paths)

    def read(
        self, paths: Sequence[str], index: int, look: Look, before: dict[str, Any], *, alone: bool
    ) -> Iterator[pa.RecordBatch]:
        (path,) = paths
        try:
            numbers = [int(line) for line in Path(path).read_text().split()]
        except ValueError as error:
            raise MalformedRow(f'file "{Path(path).name}" holds "x"', hint="Write integers.") from error
        note = json.dumps({"files": index + 1, "before": before.get("files", 0), "now": look.now})
        rows = [
            {"bucket": bucket, "port": "numbers", "seq": index, "blob": pack(pa.table({"n": numbers})), "note": note}
            for bucket in BUCKETS
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=EXCHANGE_SCHEMA)


class RunningSum(StatefulProcessor):
    """Adds up a bucket's integers; `wake_after` asks once to be woken that many microseconds after a file."""

    def __init__(self, wake_after: int | None = None) -> None:
        self.wake_after = wake_after

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getMapState("segments", "op string, part long", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        import pandas as pd

        with carrying():
            every = pd.concat(list(rows)).sort_values("seq")
            yield self.outputs(int(key[0]), every)

    def outputs(self, bucket: int, rows: pd.DataFrame) -> pd.DataFrame:
        import pandas as pd

        held = self.state.getValue(("sum", 0))
        total = int(held[0].decode()) if held else 0
        notes = [json.loads(note) for note in rows["note"]]
        lines = []
        for port, blob, note in zip(rows["port"], rows["blob"], notes, strict=True):
            if port != CONTROL_PORT:
                total += sum(pa.ipc.open_stream(blob).read_all()["n"].to_pylist())
            kind = port if port != CONTROL_PORT else "end" if note["end"] else "woken"
            lines.append({"bucket": bucket, "kind": kind, "total": total, "before": note.get("before", -1)})
        self.state.updateValue(("sum", 0), (str(total).encode(),))
        return pd.DataFrame(
            [
                {"output": "sums", "blob": pack(pa.Table.from_pylist(lines)), "note": ""},
                {"output": REPORT_OUTPUT, "blob": None, "note": json.dumps(self.report(lines, notes))},
            ]
        )

    def report(self, lines: list[dict[str, Any]], notes: list[dict[str, Any]]) -> dict[str, Any]:
        files = max((note["files"] for note in notes if "files" in note), default=None)
        now = max(note["now"] for note in notes)
        wake = self.wake_after is not None and all(line["kind"] == "numbers" for line in lines)
        sources = {"numbers": {"files": files}} if files else {}
        return {
            "sources": sources,
            "wake_at": now + self.wake_after if wake else None,
            "metrics": {"rows": len(lines)},
            "now": now,
        }


class ToySink(NetworkSink):
    """A sink that needs no connectors."""

    @classmethod
    def name(cls) -> str:
        return "toy_sink"

    def streamWriter(self, schema: Any, overwrite: bool) -> NetworkWriter:
        return ToyWriter(self.options)


class ToyWriter(NetworkWriter):
    def write_file(self, path: Path, format: str, rows: pa.Table, options: Any) -> None:
        import pyarrow.parquet as pq

        pq.write_table(rows, path)


class DyingSink(ToySink):
    """A sink whose second commit kills driver and JVM after its record is written, before Spark knows."""

    @classmethod
    def name(cls) -> str:
        return "dying_sink"

    def streamWriter(self, schema: Any, overwrite: bool) -> NetworkWriter:
        return DyingWriter(self.options)


class DyingWriter(ToyWriter):
    def commit(self, messages: Any, batchId: int) -> None:
        super().commit(messages, batchId)
        if batchId == 1:
            os.killpg(int(os.environ["TOY_DRIVER_GROUP"]), signal.SIGKILL)


@dataclass(frozen=True)
class Toy:
    """A network of one stream and one output in a folder of its own."""

    root: Path

    def __post_init__(self) -> None:
        self.inputs.mkdir(parents=True, exist_ok=True)

    @property
    def inputs(self) -> Path:
        return self.root / "in"

    @property
    def commits(self) -> Path:
        return self.root / "commits"

    def put(self, name: str, *numbers: object) -> None:
        draft = self.inputs / f".{name}"
        draft.write_text("\n".join(map(str, numbers)))
        draft.rename(self.inputs / f"{name}.txt")

    def start(
        self,
        spark: SparkSession,
        *,
        every: str | None = None,
        max_files: int = 1,
        sink: type[NetworkSink] = ToySink,
        wake_after: int | None = None,
    ) -> StreamingQuery:
        for source in (FilesSource, ControlSource, sink):
            spark.dataSource.register(source)
        numbers = (
            spark.readStream.format("millrace_files")
            .name("numbers")
            .options(low_level=encode(IntegerFiles(str(self.inputs))), stream="numbers")
            .options(commits=str(self.commits), max_files=max_files)
            .load()
        )
        control = (
            spark.readStream.format("millrace_control")
            .name("control")
            .options(commits=str(self.commits), buckets=json.dumps(BUCKETS), clock="on")
            .load()
        )
        sums = (
            numbers.union(control)
            .groupBy("bucket")
            .transformWithStateInPandas(RunningSum(wake_after), OUTPUT, "append", "none")
        )
        sinks = {"sums": {"format": "parquet", "path": str(self.root / "out")}}
        writer = (
            sums.writeStream.format(sink.name())
            .options(commits=str(self.commits), sinks=json.dumps(sinks))
            .option("checkpointLocation", str(self.root / "checkpoint"))
            .outputMode("append")
        )
        writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
        return writer.start()

    def run(self, spark: SparkSession, **options: Any) -> None:
        """Process what is there, and stop."""
        query = self.start(spark, **options)
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def results(self, bucket: int | None = None) -> list[tuple[str, int]]:
        """Each result's kind and running sum, of the first bucket unless told otherwise, by batch."""
        import pyarrow.parquet as pq

        files = sorted((self.root / "out").glob("part-*.parquet"))
        lines = [line for file in files for line in pq.read_table(file).to_pylist()]
        wanted = BUCKETS[0] if bucket is None else bucket
        return [(line["kind"], line["total"]) for line in lines if line["bucket"] == wanted]


def main(root: str) -> None:
    """Run a toy network in this process until its sink kills it."""
    from millrace.hosts.spark.session import open_session

    os.environ["TOY_DRIVER_GROUP"] = str(os.getpgid(0))
    spark = open_session("local[2]", log_file=Path(root) / "spark.log", settings=SETTINGS)
    Toy(Path(root)).run(spark, sink=DyingSink)


if __name__ == "__main__":
    main(sys.argv[1])
