"""A source of one's own: the lines of log files, one partition per file, read while the files grow."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

import millrace as mr
from millrace import PartitionSpan, Source, SourcePiece


class LogLines(Source):
    """Lines of the files of a folder; a position is a byte, so that a run goes on where the one before stood."""

    def spans(self) -> Mapping[str, PartitionSpan]:
        files = Path(self.options["folder"]).glob("*.log")
        return {file.name: PartitionSpan(0, _end_of_lines(file)) for file in files}

    def read(self, partition: str, start: int, stop: int) -> Iterator[SourcePiece]:
        with (Path(self.options["folder"]) / partition).open("rb") as file:
            file.seek(start)
            lines = file.read(stop - start).decode().splitlines()
        times, texts = zip(*(line.split(" ", 1) for line in lines), strict=True)
        columns = {"ts": pa.array(times).cast(pa.timestamp("us")), "text": pa.array(texts)}
        rows = pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)
        yield SourcePiece(partition, rows, stop)


def _end_of_lines(file: Path) -> int:
    """Where the last whole line ends."""
    return file.read_bytes().rfind(b"\n") + 1


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        web, mail = Path(folder, "web.log"), Path(folder, "mail.log")
        web.write_text("2026-01-01T12:00:01 started\n2026-01-01T12:01:02 ready\n2026-01-01T12:01:")
        mail.write_text("2026-01-01T12:00:05 started\n")
        net = mr.Network(variables={"folder": folder})
        net.sql(
            """
            CREATE STREAM lines (text STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
              FROM python OPTIONS (source '__main__:LogLines', folder '${folder}');
            CREATE QUERY found AS SELECT ts, text FROM lines;
            """
        )
        for _ in range(2):
            run = net.run(on="local", until="available", checkpoint=Path(folder, "checkpoint"))
            for row in run.results("found").sort_by("ts").to_pylist():
                print(f"{row['ts']:%H:%M:%S} {row['text']}")
            print("--")
            with web.open("a") as more:
                more.write("03 stopped\n")


if __name__ == "__main__":
    main()
