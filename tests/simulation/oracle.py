"""What a scenario must have come to, by the naive reference over the rows that each stream let in.

A network has a query per stream that shows each row that was let in, and one for late rows. Where rows alone decide
what is late, that is checked; where the clock decides too, it is taken as it came. All else follows from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import NO_BOUND
from millrace.kernel.progress.admission import FUTURE_SKEW
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Scan, Since, Union
from millrace.plan.nodes.update_nodes import AnyQueue, AnyUpdateJoin, MarkedAggregate
from millrace.plan.updates.queue_placement import key_of
from millrace.testing.simulation.scenario import Outcome, Scenario
from tests.reference import _rows, admitted, evaluate, multiset, same
from tests.reference_values import TIME, micros

Row = dict[str, Any]
_EVER = 1 << 62
"""More disorder than there can be."""


class WrongAnswer(AssertionError):
    """An outcome is not what the input gives."""


def check(scenario: Scenario, outcome: Outcome) -> None:
    """Raise where an outcome is not what the input gives."""
    streams = QueryNetwork(tuple(outcome.queries.values())).streams()
    rows = {stream.name: _let_in(stream, scenario, outcome) for stream in streams}
    for name, query in outcome.queries.items():
        if not name.startswith(("seen_", "late_")):
            _check_query(name, query, rows, outcome)


# What streams let in


def _let_in(stream: Stream, scenario: Scenario, outcome: Outcome) -> list[Row]:
    """The rows that a stream let in, with the times that it gave them."""
    name, given = stream.name, scenario.inputs[stream.name].rows.to_pylist()
    seen, late = outcome.results[f"seen_{name}"], outcome.results.get(f"late_{name}")
    ids, account = [row["id"] for row in seen], outcome.sources[name]
    if ids != sorted(set(ids)):
        raise WrongAnswer(f'stream "{name}" let rows in twice, or out of order: {ids}')
    if late is not None:
        late_ids = [row["id"] for row in late]
        if len(late_ids) != account.late or set(late_ids) & set(ids) or len(set(late_ids)) != len(late_ids):
            raise WrongAnswer(f'stream "{name}" let in {ids}, found {late_ids} late, and says {account}')
    if len(ids) + account.late + account.quarantined != len(given):
        raise WrongAnswer(f'stream "{name}" let in {len(ids)} of {len(given)} rows, and says {account}')
    if _by_rows_alone(stream, scenario):
        verdicts = [verdict for verdict, _ in admitted(stream.time, given, stream.schema)]
        expected = [row["id"] for row, verdict in zip(given, verdicts, strict=True) if verdict == "admitted"]
        if ids != expected or account.late != verdicts.count("late"):
            raise WrongAnswer(f'stream "{name}" let in {ids} instead of {expected}, and says {account}')
    by_id = {row["id"]: row for row in given}
    return [{**by_id[row["id"]], "ts": row["ts"]} for row in seen]


def _by_rows_alone(stream: Stream, scenario: Scenario) -> bool:
    """True if the rows alone decide which of them are late or from the future."""
    time, given = stream.time, scenario.inputs[stream.name]
    if time.kind != "external" or time.ets != "none" or time.declared or time.grace or time.max_future_skew is not None:
        return False
    jumps = any(isinstance(event, int) for life in scenario.lives for _, event in life.events)
    ahead = given.rows.column("ts").cast(pa.int64()).fill_null(0).to_numpy() - np.array(given.times, np.int64)
    return not jumps and not (ahead > FUTURE_SKEW).any()


# Answers


def _check_query(name: str, query: Query, rows: dict[str, list[Row]], outcome: Outcome) -> None:
    found, begun = outcome.results[name], _begun(query)
    if (key := key_of(query)) is not None:
        _check_updates(name, begun, key, rows, found, dropped=name in outcome.dropped)
        return
    expected = evaluate(begun, rows)
    if _starts_unseen(query):
        expected = expected[len(expected) - min(len(found), len(expected)) :]
    if name in outcome.dropped or query.options.get("queue") == "append_shed":
        if left := _unaccounted(found, expected):
            raise WrongAnswer(f"{name}, which may give less than all, gave\n{_shown(left)}")
    elif not same(found, expected):
        raise WrongAnswer(f"{name} gave\n{_shown(found)}\ninstead of\n{_shown(expected)}")


def _unaccounted(found: list[Row], expected: list[Row]) -> list[Row]:
    """The rows found that are none of those expected, each of which may be found once."""
    open_rows, left = list(expected), list[Row]()
    for row in found:
        place = next((place for place, each in enumerate(open_rows) if same([row], [each])), None)
        if place is None:
            left.append(row)
        else:
            del open_rows[place]
    return left


def _check_updates(
    name: str, query: Query, key: Sequence[str], rows: dict[str, list[Row]], found: list[Row], *, dropped: bool
) -> None:
    """Each result is correct for some input, no key goes back in time, and the last of each key is exact."""
    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        by_key[tuple(row[column] for column in key)].append(row)
    for column in {"ts", "at", "window_end"} & set(query.root.schema.names):
        for own, results in by_key.items():
            times = [row[column] for row in results]
            if times != sorted(times):
                raise WrongAnswer(f"{name} went back in time for {own}: {times}")
    everything = _updates(query, rows)
    if left := set(multiset(found)) - set(multiset(everything)):
        raise WrongAnswer(f"{name} gave what is no answer: {left}")
    last = {tuple(row[column] for column in key): row for row in everything}.values()
    if not dropped and multiset(each[-1] for each in by_key.values()) != multiset(last):
        ended = [each[-1] for each in by_key.values()]
        raise WrongAnswer(f"{name} ended with\n{_shown(ended)}\ninstead of\n{_shown(list(last))}")


def _updates(query: Query, rows: dict[str, list[Row]]) -> list[Row]:
    """All that may be given, in order of time: of each key the last is its last answer."""
    if any(isinstance(node, Join | AnyUpdateJoin) for node in walk(query.root)):
        return _pairs(*(_from(query.since, rows[name]) for name in ("s0", "s1")))
    found = sorted(_rows(query.root, rows), key=lambda row: row[TIME])
    return [{name: value for name, value in row.items() if name != TIME} for row in found]


def _from(start: int, rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if micros(row["ts"]) >= start), key=lambda row: row["ts"])


def _pairs(first: Sequence[Row], second: Sequence[Row]) -> list[Row]:
    return [
        {"k": a["k"], "j": a["j"], "v": a["v"], "w": b["v"], "ts": a["ts"], "at": b["ts"]}
        for a in first
        for b in second
        if None not in (a["k"], a["j"]) and (a["k"], a["j"]) == (b["k"], b["j"])
    ]


def _begun(query: Query) -> Query:
    """The query over the rows from its start on, of streams that let all in."""

    def begun(node: Node) -> Node:
        if isinstance(node, AnyQueue):
            # A queue may hold rows back, or drop some: all that it may give is the answer over all of them.
            return begun(Union(node.inputs) if len(node.inputs) > 1 else node.inputs[0])
        if isinstance(node, MarkedAggregate):
            return begun(node.aggregate)
        if not isinstance(node, Scan):
            return node.map_children(begun)
        scan = replace(node, stream=replace(node.stream, time=_unguarded(node.stream)))
        start = query.starts.get(node.source if node.has_other_time else "", NO_BOUND)
        unknown = start == NO_BOUND or query.tree is not None or _starts_unseen(query)
        return scan if unknown else Since(scan, start)

    tree = None if _starts_unseen(query) else query.tree
    return replace(query, root=begun(tree or query.root))


def _starts_unseen(query: Query) -> bool:
    """True if a query starts at a stamp that its rows do not show, so that all that is known of it is the last rows."""
    scans = [node for node in walk(query.root) if isinstance(node, Scan)]
    own = any(scan.stream.time.kind == "latent" and not scan.has_other_time for scan in scans)
    return own and query.since != NO_BOUND


def _unguarded(stream: Stream) -> Any:
    free = replace(stream.time, kind="external", column="ts", disorder=_EVER, rows=None, max_future_skew=None)
    return replace(free, punctuation=None, partitions=(), per=())


def _shown(rows: Sequence[Row]) -> str:
    return "\n".join(f"  {row}" for row in rows[:20])
