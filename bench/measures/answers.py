"""The results that a system has published, compared as multisets with those of DuckDB over the same files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.queries.workload import Work
from millrace.experiments.demo.sink_watcher import committed_files, log_entries


class WrongAnswers(SystemExit):
    """A system with one wrong row has no speed."""


@dataclass(frozen=True)
class Answers:
    """How many results a system gave, all of them true, and how many there are."""

    found: int
    true: int


def check(workload: Work, output: Path, engine: str) -> int:
    """The number of result rows; refuses answers that differ from those that are certain when a run ends."""
    answers = answered(workload, output, engine)
    if answers.found < answers.true:
        raise WrongAnswers(f"bench: {engine}: {answers.true - answers.found:,} results are missing")
    return answers.true


def answered(workload: Work, output: Path, engine: str) -> Answers:
    """What a system gave of all results; refuses any that is not true, or comes more often than it should."""
    columns, files = workload.results, ", ".join(f"'{path}'" for path in published(output))
    with opened(workload) as database:
        database.execute(f"CREATE TABLE truth AS SELECT {columns} FROM ({workload.truth()})")
        given = f"read_parquet([{files}])" if files else "truth LIMIT 0"
        database.execute(f"CREATE TABLE found AS SELECT {columns} FROM {given}")
        answers = Answers(_count(database, "FROM found"), _count(database, "FROM truth"))
        untrue = _count(database, "FROM found EXCEPT ALL FROM truth")
    if untrue:
        raise WrongAnswers(f"bench: {engine}: {untrue:,} results are not true")
    return answers


def opened(workload: Work) -> duckdb.DuckDBPyConnection:
    """A database whose views are the workload's streams."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for name, folder in workload.folders.items():
        database.execute(f"CREATE VIEW {name} AS FROM read_parquet('{folder}/*.parquet')")
    return database


def _count(database: duckdb.DuckDBPyConnection, query: str) -> int:
    (rows,) = database.execute(f"SELECT count(*) FROM ({query})").fetchone() or (0,)
    return int(rows)


def published(output: Path) -> dict[str, int]:
    """The micro-batch of each file with results: by its name, or by the log of Spark's file sink.

    Spark leaves files of micro-batches that were broken off; its log does not name them.
    """
    log = output / "_spark_metadata"
    if not log.is_dir():
        return {str(path): int(path.stem.split("-")[1]) for path in sorted(output.glob("part-*.parquet"))}
    found: dict[str, int] = {}
    for batch, entry in log_entries(log):
        for path in committed_files(entry.read_text()):
            found.setdefault(path, batch)
    return found
