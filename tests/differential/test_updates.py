"""Update queries on every host: the last answer of every key is exact, and no key ever goes back in time.

How many answers come before the last depends on the host and on what work costs; each of them is correct for the rows
that had come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from millrace.language.declarations.query_options import spelling
from millrace.testing import Host

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
STREAM = """
CREATE STREAM {name} (k STRING, j INT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 20 SECONDS
  UPDATE KEY (k, j) FROM iterable;
"""
STREAMS = "".join(STREAM.format(name=name) for name in ("s", "t"))
POLICIES = ("update_fifo", "inplace", "linecutting", "linecutting_as_printed", "auto")
WINDOW = "[RANGE 20 SECONDS SLIDE 10 SECONDS]"
QUERIES = {
    **{f"by_{policy}": ("SELECT k, j, v, ts FROM s", spelling("queue", policy)) for policy in POLICIES},
    "in_turns": ("SELECT k, j, v, ts FROM s", "budget = '100 rows'"),
    "naive": ("SELECT k, j, v, ts FROM s", "baseline = 'naive_memory'"),
    "filtered": ("SELECT j, k AS name, v, ts FROM s WHERE v % 3 = 0", ""),
    "united": ("SELECT k, j, v, ts FROM s UNION t", ""),
    "joined": ("SELECT s.k, s.j, s.v, t.v AS w, s.ts, t.ts AS at FROM s JOIN t ON s.k = t.k AND t.j = s.j", ""),
    "all_rows": ("SELECT k, j, v, ts FROM s", "queue = 'append'"),
    "accessed": ("SELECT k, j, v, ts FROM s", "", "ACCESS EVERY INTERVAL 1 MINUTE WHEN k = 'a', EVERY INTERVAL 1 HOUR"),
}
TRUTHS = {f"truth_{name}": (f"SELECT k, j, v, ts FROM s UNION t TRUTH {name}", "") for name in ("s", "t")}
WINDOWS = {
    **{
        f"windows_{mode}_{close}": (
            f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM s {WINDOW} GROUP BY k, j",
            f"update_window = '{mode}', close = '{close}'",
        )
        for mode in ("lazy", "eager")
        for close in ("bound", "own")
    },
    "every_window": (
        f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM s {WINDOW} GROUP BY k, j",
        "baseline = 'every_window'",
    ),
    "all_windows": (
        f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM s {WINDOW} GROUP BY k, j",
        "queue = 'append'",
    ),
}
SHEDDING = {
    "some_rows": ("SELECT k, j, v, ts FROM s", "queue = 'append_shed', keep = 0.5"),
    "some_windows": (
        f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM s {WINDOW} GROUP BY k, j",
        "baseline = 'random_windows', keep = 0.5",
    ),
}
Query = tuple[str, ...]
"""A query, its options, and what else stands before AS."""
Row = dict[str, Any]
Key = tuple[str, int]


def rows_of(seed: int, count: int) -> list[Row]:
    """Updates of fast and slow keys; one in ten comes late, but not too late. No two of a key have the same time."""
    draw, clock, rows, taken = Random(seed), 0.0, [], set()
    while len(rows) < count:
        clock += draw.random()
        key = draw.choice("aaaaabbcdefghij"), draw.randrange(4)
        time = round((clock - (draw.random() * 9 if draw.random() < 0.1 else 0)) * SECOND)
        if (key, time) not in taken:
            taken.add((key, time))
            rows.append({"k": key[0], "j": key[1], "v": len(rows), "ts": time})
    return rows


def table(rows: list[Row]) -> pa.Table:
    kinds = {"k": pa.string(), "j": pa.int32(), "v": pa.int64()}
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    return pa.table({**columns, "ts": pa.array([row["ts"] for row in rows], pa.int64()).cast(TIMESTAMP)})


def key_of(row: Row) -> Key:
    return row.get("k", row.get("name")), row["j"]


def micros(row: Row, column: str = "ts") -> int:
    return round(row[column].timestamp() * SECOND)


def in_order(rows: list[Row]) -> list[Row]:
    """The rows that are newer than all of their key before them."""
    newest: dict[Key, int] = {}
    found = []
    for row in rows:
        if row["ts"] > newest.get(key_of(row), row["ts"] - 1):
            newest[key_of(row)] = row["ts"]
            found.append(row)
    return found


def last_of(rows: list[Row]) -> dict[Key, Row]:
    """By key the row of the latest time."""
    return {key_of(row): row for row in sorted(rows, key=lambda row: row["ts"])}


def by_key(results: list[Row]) -> dict[Key, list[Row]]:
    """The results of each key in the order in which they came."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in results:
        found[key_of(row)].append(row)
    return found


@pytest.fixture(scope="module")
def inputs() -> dict[str, list[Row]]:
    return {"s": rows_of(1, 750), "t": rows_of(2, 500)}


def check_maps(rows: list[Row], results: list[Row]) -> None:
    """Every result is an update that came, in order, and the last of each key is its newest."""
    known = {(key_of(row), row["v"], row["ts"]) for row in rows}
    expected = last_of(rows)
    found = by_key(results)
    assert found.keys() == expected.keys()
    for key, own in found.items():
        times = [micros(row) for row in own]
        assert times == sorted(set(times)), "a key does not go back in time, nor is a row given twice"
        assert {(key, row["v"], micros(row)) for row in own} <= known
        assert (own[-1]["v"], times[-1]) == (expected[key]["v"], expected[key]["ts"])


def check_join(first: list[Row], second: list[Row], results: list[Row]) -> None:
    """Every result is of two updates that came, neither goes back, and the last is of the newest two."""
    known = {(key_of(row), row["v"]): row["ts"] for row in first}
    others = {(key_of(row), row["v"]): row["ts"] for row in second}
    left, right = last_of(first), last_of(second)
    found = by_key(results)
    assert found.keys() == left.keys() & right.keys()
    for key, own in found.items():
        for row in own:
            assert (known[key, row["v"]], others[key, row["w"]]) == (micros(row), micros(row, "at"))
        for column in ("ts", "at"):
            times = [micros(row, column) for row in own]
            assert times == sorted(times)
        assert (own[-1]["v"], own[-1]["w"]) == (left[key]["v"], right[key]["v"])


def windows_of(rows: list[Row]) -> dict[tuple[Key, int], tuple[int, int]]:
    """By key and start of a window how many rows it has, and their sum."""
    found: dict[tuple[Key, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in rows:
        newest = row["ts"] // (10 * SECOND) * 10 * SECOND
        for start in (newest - 10 * SECOND, newest):
            count, total = found[key_of(row), start]
            found[key_of(row), start] = (count + 1, total + row["v"])
    return found


def windows_in(results: list[Row]) -> dict[tuple[Key, int], tuple[int, int]]:
    """The same of results, each window once."""
    found = {(key_of(row), micros(row, "window_start")): (row["n"], row["total"]) for row in results}
    assert len(found) == len(results)
    return found


def check_windows(rows: list[Row], results: list[Row]) -> None:
    """Every window has all the rows, those of a key come in order, and the last is the last that has rows."""
    expected, last = windows_of(rows), last_of(rows)
    found = by_key(results)
    assert found.keys() == last.keys()
    for key, own in found.items():
        starts = [micros(row, "window_start") for row in own]
        assert starts == sorted(set(starts))
        for start, row in zip(starts, own, strict=True):
            assert expected[key, start] == (row["n"], row["total"])
        assert starts[-1] == last[key]["ts"] // (10 * SECOND) * 10 * SECOND


def run(
    host: Host, queries: Mapping[str, Query], inputs: Mapping[str, list[Row]], *, sheds: bool = False
) -> dict[str, list[Row]]:
    """The results of each query; what became of the rows is checked on the way."""
    pieces = {name: [table(rows[at : at + 150]) for at in range(0, len(rows), 150)] for name, rows in inputs.items()}
    declared = (
        f"CREATE QUERY {name} {f'WITH ({options})' if options else ''} {' '.join(rest)} AS {text};\n"
        for name, (text, options, *rest) in queries.items()
    )
    run = host.open(STREAMS + "".join(declared), pieces)
    report = run.run()
    for name, source in report.sources.items():
        assert (source.received, source.late, source.buffered) == (len(inputs[name]), 0, 0)
        assert source.received == source.processed + source.superseded + source.shed
        assert sheds == (source.shed > 0)
    for title, queue in report.queues.items():
        assert queue.entered == queue.let_go + queue.superseded + queue.shed, title
        assert queue.waiting == 0
    return {name: [row for each in tables for row in each.to_pylist()] for name, tables in run.memory.items()}


@pytest.mark.slow
def test_the_last_answer_of_every_key_is_exact_on_every_host(host: Host, inputs: dict[str, list[Row]]) -> None:
    found, first, second = run(host, QUERIES, inputs), inputs["s"], inputs["t"]
    for name in [*(f"by_{policy}" for policy in POLICIES), "in_turns", "naive", "accessed"]:
        check_maps(first, found[name])
    check_maps([row for row in first if row["v"] % 3 == 0], found["filtered"])
    check_maps(first + second, found["united"])
    check_join(first, second, found["joined"])
    assert sorted(row["v"] for row in found["all_rows"]) == [row["v"] for row in first]


@pytest.mark.slow
def test_every_window_is_whole_on_every_host(host: Host, inputs: dict[str, list[Row]]) -> None:
    found = run(host, WINDOWS, inputs)
    for name in ("all_windows", "every_window"):
        assert windows_in(found.pop(name)) == windows_of(inputs["s"])
    for name, results in found.items():
        # Where the rows of a key close its windows, rows that come out of order are too late.
        check_windows(in_order(inputs["s"]) if name.endswith("own") else inputs["s"], results)


@pytest.mark.slow
def test_at_equal_times_the_source_of_truth_wins_on_every_host(host: Host, inputs: dict[str, list[Row]]) -> None:
    first = inputs["s"]
    second = [{**row, "v": row["v"] + 10_000} for row in first[::2]]
    found = run(host, TRUTHS, {"s": first, "t": second})
    for name, rows in (("truth_s", second + first), ("truth_t", first + second)):
        expected = last_of(rows)
        for key, own in by_key(found[name]).items():
            times = [micros(row) for row in own]
            assert times == sorted(times)
            assert (own[-1]["v"], times[-1]) == (expected[key]["v"], expected[key]["ts"])


@pytest.mark.slow
def test_what_is_shed_is_counted_and_what_is_left_is_right_on_every_host(
    host: Host, inputs: dict[str, list[Row]]
) -> None:
    found, rows = run(host, SHEDDING, {"s": inputs["s"]}, sheds=True), inputs["s"]
    left = [row["v"] for row in found["some_rows"]]
    assert len(set(left)) == len(left) and set(left) < {row["v"] for row in rows}
    assert 0.4 < len(left) / len(rows) < 0.6
    windows = windows_in(found["some_windows"])
    assert windows.items() < windows_of(rows).items()
    assert 0.4 < len(windows) / len(windows_of(rows)) < 0.6
