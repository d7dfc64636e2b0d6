"""Which files hold the latest answers on Spark, and their digests: a record of merged files, and the parts since.

Rules:
- Tasks write parts, which the record of their micro-batch names. The driver merges parts now and then, after their
  commit, and puts a record of all merged files in place before it removes anything.
- So every file that counts is named by a record. One that is missing is missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millrace.hosts.checkpoint.digests import missing
from millrace.hosts.checkpoint.durable_files import read_record, write_record
from millrace.hosts.spark.commit_log.commit_log import CommitLog

_RECORD = "answers.json"


def write_index(folder: Path, batch: int, files: Mapping[str, str]) -> None:
    """Say by which files all answers are held as of a micro-batch: their digests by path in the checkpoint."""
    if files:
        write_record(folder / _RECORD, {"batch": batch, "files": dict(files)})


def kept_answers(folder: Path, log: CommitLog) -> dict[str, str]:
    """The digests of all files that hold committed answers of a network that has some, by path in the checkpoint."""
    merged: dict[str, Any] = {"batch": -1, "files": {}}
    # Without a record of merged files all records of parts must be there.
    if (path := folder / _RECORD).exists() or log.first() > 0:
        merged = read_record(path)
    found: dict[str, str] = dict(merged["files"])
    for _, record in log.records(after=merged["batch"]):
        found |= record.get("answers", {})
    if not path.exists() and not all((folder / name).exists() for name in found):
        # Parts are removed when a record of merged files is in place.
        raise missing(path)
    return found
