"""The latest answers of a network, asked from outside: of a run that listens, or of the checkpoint of one that ended.

Rules:
- A run that listens is asked itself, and says what stands now.
- A checkpoint says what was committed last; it can be asked alive or dead, on Spark and on the local host.
- One who follows a run looks now and then, and is told by the run what has changed since the last look when it ends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from millrace.errors import MillraceError, RequestError
from millrace.hosts.answers.answer_files import folder_of, stored
from millrace.hosts.answers.requests import one_row, plain_table
from millrace.hosts.checkpoint.durable_files import read_json
from millrace.hosts.control.request_folder import LastRequest, ask, listening, listens
from millrace.hosts.spark.commit_log.commit_log import CommitLog

_LOOK = 0.2
"""Seconds between two looks of one who follows."""


@dataclass(frozen=True)
class Found:
    """Rows of plain values, and the version to ask from the next time."""

    columns: list[str]
    rows: list[list[Any]]
    version: int = 0

    def data(self) -> Iterator[dict[str, Any]]:
        """Each row by the names of its columns."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


def latest(
    folder: Path, query: str, key: Sequence[str] | None, timeout: float, *, refresh: bool = False, stale: bool = False
) -> Found:
    """The latest answers of a query, or that of one key; or how stale they are."""
    if listens(folder):
        words = None if key is None else list(key)
        what = {"read": "staleness"} if stale else {"read": "latest", "key": words, "refresh": refresh}
        return _asked(folder, {**what, "query": query}, timeout)
    if stale or refresh:
        raise RequestError(
            f'no run listens in "{folder}"', hint="Answers grow stale, and can be refreshed, while a run is at work."
        )
    return _committed(folder, query, key)


def follow(folder: Path, query: str, show: Callable[[Found], None], timeout: float) -> None:
    """Show the answers of a run at work, and then what changes, until it ends."""
    run, request = listening(folder), {"read": "latest", "query": query}
    with LastRequest(folder) as last:
        found = Found([], [])
        while run == listening(folder):
            asked = {**request, "since": found.version}
            if run is not None:
                last.write(json.dumps(asked))
            try:
                news = _asked(folder, asked, timeout)
            except MillraceError:
                if run == listening(folder):
                    raise
                break
            if news.rows or not found.columns:
                show(news)
            found = news
            time.sleep(_LOOK)
        for answer in last.answers():
            if answer["version"] > found.version:
                show(_found(answer))


def _asked(folder: Path, request: dict[str, Any], timeout: float) -> Found:
    (answer,) = ask(folder, json.dumps(request), timeout)
    return _found(answer)


def _found(answer: Mapping[str, Any]) -> Found:
    return Found(answer["columns"], answer["rows"], answer["version"])


def _committed(folder: Path, query: str, key: Sequence[str] | None) -> Found:
    epoch = _epoch(folder)
    if epoch is None:
        raise RequestError(
            f'no run listens in "{folder}", and it is no checkpoint',
            hint="Name the --checkpoint folder of a run, or the --control folder of one that is at work.",
        )
    found = stored(folder_of(folder, query), epoch)
    if found is None:
        known = sorted(unquote(path.name) for path in (folder / "latest").glob("*"))
        raise RequestError(
            f'the checkpoint "{folder}" holds no latest answers of a query "{query}"',
            hint=f"It holds those of {', '.join(known)}."
            if known
            else "Update queries have them: UPDATE KEY, and not queue = 'append'.",
        )
    rows = found.table() if key is None else one_row(found, list(key))
    return Found(**plain_table(rows))


def _epoch(folder: Path) -> int | None:
    """The epoch that was committed last in a checkpoint; None if it is none."""
    if (folder / "current.json").exists():
        return int(read_json(folder / "current.json")["epoch"])
    record = CommitLog(folder / "commits").newest()
    return None if record is None else int(record["batch"])
