"""`millrace latest`: the latest answer of each key of an update query.

Rules:
- A run that listens answers itself, with what stands now.
- Without one, the checkpoint answers with what was committed last, on Spark and on the local host.
- `--follow` polls the run. A request that waits in its folder makes the run report the last changes when it ends.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from millrace.commands.arguments import Commands, add_json, add_run_folder, add_timeout, timeout_seconds
from millrace.errors import MillraceError, RequestError, listed
from millrace.hosts.answers.answer_files import folder_of, stored_answers
from millrace.hosts.checkpoint.checkpoint import kept_files
from millrace.hosts.control.read_requests import one_row
from millrace.hosts.control.replies import plain_table, rows_text
from millrace.hosts.control.request_folder import LastRequest, ask, listening, listens
from millrace.hosts.spark.commit_log.answer_index import kept_answers
from millrace.hosts.spark.commit_log.commit_log import CommitLog

_POLL = 0.2
"""Seconds between two requests of `--follow`."""


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("latest")
    add_run_folder(command)
    command.add_argument("query", metavar="QUERY")
    command.add_argument(
        "--key",
        nargs="+",
        metavar="VALUE",
        help="one key: its values in order, or column=value; exit code 1 if it has no answer",
    )
    command.add_argument("--follow", action="store_true", help="afterwards show every change, until the run ends")
    command.add_argument("--refresh", action="store_true", help="first ask polled streams for rows")
    command.add_argument("--staleness", action="store_true", help="how stale each key is, in microseconds")
    add_timeout(command)
    add_json(command)
    command.set_defaults(carry_out=_latest)


def _latest(options: argparse.Namespace) -> int:
    timeout = timeout_seconds(options)
    if options.follow:
        headed: list[str] = []
        follow(options.folder, options.query, lambda found: _show(found, options, headed), timeout)
        return 0
    found = latest(
        options.folder, options.query, options.key, timeout, refresh=options.refresh, stale=options.staleness
    )
    _show(found, options, [])
    return 0 if found.rows or options.key is None else 1


@dataclass(frozen=True)
class PlainAnswers:
    """Answers as rows of plain values, and the version to ask from the next time."""

    columns: list[str]
    rows: list[list[Any]]
    version: int = 0

    def data(self) -> Iterator[dict[str, Any]]:
        """Each row by the names of its columns."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


def _show(found: PlainAnswers, options: argparse.Namespace, headed: list[str]) -> None:
    """Print rows as objects, or tab-separated under a head that is printed once."""
    if options.json:
        lines = [json.dumps(row) for row in found.data()]
    else:
        lines = rows_text(found.columns, found.rows).split("\n")[1 if headed else 0 :]
        headed += found.columns
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def latest(
    folder: Path, query: str, key: Sequence[str] | None, timeout: float, *, refresh: bool = False, stale: bool = False
) -> PlainAnswers:
    """The latest answers of a query, or that of one key; with `stale`, how stale they are."""
    if listens(folder):
        words = None if key is None else list(key)
        what = {"read": "staleness"} if stale else {"read": "latest", "key": words, "refresh": refresh}
        return _asked(folder, {**what, "query": query}, timeout)
    if stale or refresh:
        raise RequestError(
            f'no run listens in "{folder}"',
            hint="Only a run that is at work can measure staleness and refresh answers.",
        )
    return _committed(folder, query, key)


def follow(folder: Path, query: str, show: Callable[[PlainAnswers], None], timeout: float) -> None:
    """Show the answers of a run at work, and then what changes, until it ends."""
    run, request = listening(folder), {"read": "latest", "query": query}
    with LastRequest(folder) as last:
        found = PlainAnswers([], [])
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
            time.sleep(_POLL)
        for answer in last.answers():
            if answer["version"] > found.version:
                show(_answers(answer))


def _asked(folder: Path, request: dict[str, Any], timeout: float) -> PlainAnswers:
    (answer,) = ask(folder, json.dumps(request), timeout)
    return _answers(answer)


def _answers(answer: Mapping[str, Any]) -> PlainAnswers:
    return PlainAnswers(answer["columns"], answer["rows"], answer["version"])


def _committed(folder: Path, query: str, key: Sequence[str] | None) -> PlainAnswers:
    kept = _kept(folder)
    if kept is None:
        raise RequestError(
            f'no run listens in "{folder}", and it is no checkpoint',
            hint="Name the --checkpoint folder of a run, or the --control folder of one that is at work.",
        )
    found = stored_answers(folder_of(folder, query), kept)
    if found is None:
        known = sorted(unquote(path.name) for path in (folder / "latest").glob("*"))
        raise RequestError(
            f'the checkpoint "{folder}" holds no latest answers of a query "{query}"',
            hint=f"It holds those of {listed(known)}."
            if known
            else "Update queries have them: UPDATE KEY, and not queue = 'append'.",
        )
    rows = found.table() if key is None else one_row(found, list(key))
    return PlainAnswers(**plain_table(rows))


def _kept(folder: Path) -> Mapping[str, str] | None:
    """The digests of the committed files of a checkpoint, by path; None if the folder is none."""
    if (folder / "current.json").exists():
        return kept_files(folder)
    log = CommitLog(folder / "commits")
    if log.newest() is None:
        return None
    return kept_answers(folder, log) if (folder / "latest").is_dir() else {}
