"""Requests that only read: the latest answers of an update query, what has changed, how stale they are.

A request through a control folder is a JSON object, {"read": "latest", "query": "prices"}:
- "latest": all answers, or that of a "key" (words in the key's order, or name=value), after its polled
  streams have been polled if "refresh" is true; "since" a version, those that have changed since;
- "staleness": that of each key; "queries": which queries there are, and their keys.
The answer holds "columns" and "rows", and for "latest" the "version" to ask from the next time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millrace.errors import RequestError, listed
from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.answers.run_answers import RunAnswers
from millrace.hosts.control.replies import QueryStart, Reply, plain_table
from millrace.hosts.host_run import HostRun
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.queue_placement import key_of


@dataclass(frozen=True)
class RowsReply(Reply):
    """Rows that were asked for."""

    rows: pa.Table | None = None
    version: int = 0

    def data(self) -> dict[str, Any]:
        """The answer as plain data."""
        assert self.rows is not None
        return {"did": self.did, "version": self.version, **plain_table(self.rows)}


def is_read_request(text: str) -> bool:
    """True if a request only reads.

    >>> is_read_request('{"read": "queries"}'), is_read_request("SHOW QUERIES")
    (True, False)
    """
    return text.lstrip().startswith("{")


def read_reply(text: str, run: HostRun, queries: Sequence[Query]) -> RowsReply:
    """What a request that only reads asks for."""
    asked = _request(text)
    what, query = asked["read"], str(asked.get("query", ""))
    if what == "queries":
        return _rows(query_table(run.answers, queries))
    latest = run.answers.of(query)
    if what == "staleness":
        return _rows(run.staleness(query))
    if asked.get("refresh"):
        run.refresh(query)
    if asked.get("key") is not None:
        return _rows(one_row(latest, asked["key"]), latest.version)
    if asked.get("since") is not None:
        return _rows(*latest.since(int(asked["since"])))
    # Read first: what comes in between is told again.
    version = latest.version
    return _rows(latest.table(), version)


def _request(text: str) -> Mapping[str, Any]:
    try:
        asked = json.loads(text)
    except ValueError:
        asked = {}
    if asked.get("read") not in ("latest", "staleness", "queries"):
        raise RequestError(
            f"unknown read request: {text}", hint='Ask for {"read": "latest", "query": name}, "staleness" or "queries".'
        )
    found: Mapping[str, Any] = asked
    return found


def _rows(rows: pa.Table, version: int = 0) -> RowsReply:
    return RowsReply("read", QueryStart("", ()), rows=rows, version=version)


def one_row(latest: AnswerTable, key: object) -> pa.Table:
    """The answer of a key as a table, which is empty if there is none."""
    try:
        row = latest.row(worded_key(key, latest.key))
    except RequestError:
        _check_names(key, latest.key)
        raise
    if row is None:
        _check_names(key, latest.key)
    return pa.Table.from_pylist([] if row is None else [row], schema=latest.schema)


def worded_key(key: object, names: Sequence[str]) -> object:
    """A key in words: values in the key's order, or each with its name.

    >>> worded_key(["A", "7"], ["symbol", "venue"]), worded_key(["venue=7", "symbol=A"], ["symbol", "venue"])
    (('A', '7'), {'venue': '7', 'symbol': 'A'})
    """
    if not isinstance(key, list):
        return key
    pairs = [str(word).partition("=") for word in key]
    if all(between for _, between, _ in pairs) and {name for name, _, _ in pairs} == set(names):
        return {name: value for name, _, value in pairs}
    return tuple(key)


def _check_names(key: object, names: Sequence[str]) -> None:
    """Refuse words that were found to be no key, where they may be meant as values of other columns."""
    for word in key if isinstance(key, list) and names else ():
        name, between, value = str(word).partition("=")
        if between and name.isidentifier() and name not in names:
            raise RequestError(
                f'"{name}" is no column of the key, which is {listed(names)}',
                hint=f'Write {names[0]}={value}; or {names[0]}={word}, if "{word}" is meant.',
            )


def query_table(answers: RunAnswers, queries: Sequence[Query]) -> pa.Table:
    """The queries of a run: name, key (null for one that is no update query), and how many keys have an answer."""
    keys = [key_of(query) for query in queries]
    counts = [None if key is None else len(answers.of(each.name)) for each, key in zip(queries, keys, strict=True)]
    return pa.table(
        {
            "query": pa.array([query.name for query in queries], pa.string()),
            "key": pa.array([None if key is None else list(key) for key in keys], pa.list_(pa.string())),
            "keys": pa.array(counts, pa.int64()),
            "columns": pa.array([query.root.schema.names for query in queries], pa.list_(pa.string())),
        }
    )
