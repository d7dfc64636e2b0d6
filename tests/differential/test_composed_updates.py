"""What update queries may be composed of, on every host: joins of joins and of windows, windows and unions of both.

What stands below a queue counts all rows. So each result is one of those that a naive evaluation gives, results of a
key come in order of time, and the last of each key is the last that there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pytest

from millrace.language import parse_network
from millrace.testing import Host
from tests.property.test_answers import Driver

SECOND = 1_000_000
LENGTH, SLIDE = 20 * SECOND, 10 * SECOND
TIMESTAMP = pa.timestamp("us", tz="UTC")
STREAM = """
CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 20 SECONDS {key} FROM iterable;
"""
STREAMS = "".join(
    STREAM.format(name=name, key="UPDATE KEY (k)" if name in "stu" else "") for name in ("s", "t", "u", "p", "r")
)
WINDOW = "[RANGE 20 SECONDS SLIDE 10 SECONDS]"


def counts(stream: str, window: str = WINDOW) -> str:
    return f"SELECT k, count(*) AS n, sum(v) AS total, window_end FROM {stream} {window} GROUP BY k"


PAIRS = "SELECT s.k, s.v - t.v AS d, s.ts, t.ts AS at FROM s JOIN t ON s.k = t.k"
OF_WINDOWS = (
    "SELECT x.k, x.n, x.total, y.n AS m, y.total AS other, x.window_end FROM ({}) AS x JOIN ({}) AS y "
    "ON x.k = y.k AND x.window_end = y.window_end"
)
QUERIES = {
    "of_windows": OF_WINDOWS.format(counts("s"), counts("t")),
    "of_plain_windows": OF_WINDOWS.format(counts("p"), counts("r")),
    "queued_plain_windows": OF_WINDOWS.format(counts("p"), counts("r")) + " WITH (queue = 'linecutting')",
    "queued_plain_window": counts("p") + " WITH (queue = 'inplace')",
    "latest_windows": (
        f"SELECT x.k, x.n, y.n AS m, x.window_end, y.window_end AS at FROM ({counts('s')}) AS x "
        f"JOIN ({counts('t')}) AS y ON x.k = y.k"
    ),
    "over_join": (
        f"SELECT window, s.k, count(*) {WINDOW} AS n, sum(s.v - t.v) {WINDOW} AS total FROM s JOIN t ON s.k = t.k "
        f"GROUP BY s.k"
    ),
    "over_near": (
        f"SELECT window, k, count(*) AS n, sum(d) AS total FROM ({PAIRS} AND t.ts BETWEEN s.ts - INTERVAL 3 SECONDS "
        f"AND s.ts + INTERVAL 4 SECONDS AND s.v > t.v) {WINDOW} GROUP BY k WITH (update_window = 'lazy')"
    ),
    "nested": (
        "SELECT x.k, x.d, u.v AS w, x.ts, x.at, u.ts AS third FROM "
        f"({PAIRS}) AS x JOIN u ON x.k = u.k"
    ),
    "of_three": (
        "SELECT s.k, s.v AS a, t.v AS b, u.v AS c, s.ts, t.ts AS at, u.ts AS third "
        "FROM s JOIN t ON s.k = t.k JOIN u ON u.k = t.k"
    ),
    "left": "SELECT s.k, s.v, t.v AS w, s.ts FROM s LEFT JOIN t ON s.k = t.k AND s.v > t.v AND s.k < 'd'",
    "left_windows": (
        f"SELECT x.k, x.n, x.total, y.n AS m, y.total AS other, x.window_end FROM ({counts('s')}) AS x "
        f"LEFT JOIN ({counts('t')}) AS y ON x.k = y.k AND x.window_end = y.window_end WHERE x.n > 0"
    ),
    "united": f"{counts('s')} UNION {counts('t', '[RANGE 30 SECONDS SLIDE 30 SECONDS]')}",
    "session": counts("s", "[SESSION 6 SECONDS]"),
    "third": (
        "SELECT window, k, max(m) AS n, sum(total) AS total FROM (SELECT k, max(n) AS m, sum(total) AS total FROM "
        f"({counts('s', '[RANGE 10 SECONDS SLIDE 10 SECONDS]')}) {WINDOW} GROUP BY k) "
        "[RANGE 40 SECONDS SLIDE 20 SECONDS] GROUP BY k"
    ),
    "as_of": "SELECT s.k, s.v, t.v AS w, s.ts FROM s ASOF JOIN t ON s.k = t.k AND t.ts <= s.ts",
}  # fmt: skip
Row = dict[str, Any]
Exact = dict[str, dict[int, tuple[Any, ...]]]
"""By key and time what the result holds."""
Rows = Sequence[tuple[int, int]]
"""Times and values of one key, in order of time."""


def rows_of(seed: int, count: int) -> list[Row]:
    """Updates of fast and slow keys, somewhat out of order; no two of a key have the same time."""
    draw, clock, rows, taken = Random(seed), 0.0, [], set()
    while len(rows) < count:
        clock += draw.random()
        key = draw.choice("aaaabbcdef")
        time = round(clock - draw.choice((0, 0, 0, 9)) * draw.random()) * SECOND
        if (key, time) not in taken:
            taken.add((key, time))
            rows.append({"k": key, "v": draw.randrange(100), "ts": time})
    return rows


def cut(rows: list[Row], seed: int, sizes: Sequence[int] = (1, 7, 30, 80)) -> list[pa.Table]:
    """The rows as batches of random sizes."""
    draw, pieces, at = Random(seed), [], 0
    while at < len(rows):
        some = rows[at : at + draw.choice(sizes)]
        at += len(some)
        columns = [pa.array([row["k"] for row in some]), pa.array([row["v"] for row in some], pa.int64())]
        times = pa.array([row["ts"] for row in some], pa.int64()).cast(TIMESTAMP)
        pieces.append(pa.table([*columns, times], names=["k", "v", "ts"]))
    return pieces


@pytest.fixture(scope="module")
def inputs() -> dict[str, list[Row]]:
    return {name: rows_of(seed, 110 - 10 * seed) for seed, name in enumerate(("s", "t", "u", "p", "r"))}


def of_keys(rows: list[Row]) -> dict[str, Rows]:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["ts"]):
        found[row["k"]].append((row["ts"], row["v"]))
    return dict(found)


def windows(rows: Rows, length: int = LENGTH, slide: int = SLIDE) -> dict[int, tuple[int, int]]:
    """By end of a window how many rows are in it, and their sum."""
    found: dict[int, list[int]] = defaultdict(list)
    for time, value in rows:
        start = time // slide * slide
        while start > time - length:
            found[start + length].append(value)
            start -= slide
    return {end: (len(values), sum(values)) for end, values in found.items()}


def latest(*sides: Rows) -> list[tuple[int, list[tuple[int, int]]]]:
    """At each time of a row the latest rows of all sides, if each has one."""
    found = []
    for time in sorted({row[0] for side in sides for row in side}):
        last = [[row for row in side if row[0] <= time][-1:] for side in sides]
        if all(last):
            found.append((time, [row for some in last for row in some]))
    return found


def both(first: dict[str, Rows], second: dict[str, Rows], of: Callable[[Rows, Rows], Any]) -> Any:
    return {key: found for key in first.keys() & second.keys() if (found := of(first[key], second[key]))}


def of_windows(first: Rows, second: Rows) -> dict[int, tuple[Any, ...]]:
    left, right = windows(first), windows(second)
    return {end: (*left[end], *right[end]) for end in left.keys() & right.keys()}


def latest_windows(first: Rows, second: Rows) -> dict[int, tuple[Any, ...]]:
    sides = [[(end, each[0]) for end, each in sorted(windows(rows).items())] for rows in (first, second)]
    return {time: (a[1], b[1], a[0], b[0]) for time, (a, b) in latest(*sides)}


def over_join(first: Rows, second: Rows) -> dict[int, tuple[Any, ...]]:
    return windows([(time, a[1] - b[1]) for time, (a, b) in latest(first, second)])


def over_near(first: Rows, second: Rows) -> dict[int, tuple[Any, ...]]:
    near = [(time, a, b) for time, (a, b) in latest(first, second) if -3 <= (b[0] - a[0]) / SECOND <= 4]
    return windows([(time, a[1] - b[1]) for time, a, b in near if a[1] > b[1]])


def sessions(rows: Rows) -> dict[int, tuple[Any, ...]]:
    found: list[list[tuple[int, int]]] = []
    for row in rows:
        if not found or row[0] >= found[-1][-1][0] + 6 * SECOND:
            found.append([])
        found[-1].append(row)
    return {own[-1][0] + 6 * SECOND: (len(own), sum(value for _, value in own)) for own in found}


def third(rows: Rows) -> dict[int, tuple[Any, ...]]:
    # A result of a window has the last instant of it.
    lowest = [(end - 1, each) for end, each in sorted(windows(rows, SLIDE).items())]
    middle = [(end - 1, each) for end, each in sorted(_over(lowest, LENGTH, SLIDE).items())]
    return _over(middle, 2 * LENGTH, LENGTH)


def _over(rows: list[tuple[int, tuple[int, int]]], length: int, slide: int) -> dict[int, tuple[int, int]]:
    """Windows over results of windows: the greatest count, and the sum of sums."""
    ends = {end for time, _ in rows for end in windows([(time, 0)], length, slide)}
    found = {end: [each for time, each in rows if end - length <= time < end] for end in ends}
    return {end: (max(n for n, _ in own), sum(total for _, total in own)) for end, own in found.items()}


def as_of(first: Rows, second: Rows) -> dict[int, tuple[Any, ...]]:
    times = {time for time, _ in first}
    return {time: (a[1], b[1]) for time, (a, b) in latest(first, second) if time in times}


def micros(value: Any) -> Any:
    return round(value.timestamp() * SECOND)


@dataclass(frozen=True)
class Expected:
    """The results that a naive evaluation gives, and which time and values a result has."""

    exact: Exact
    time: Callable[[Row], int] = lambda row: int(micros(row["window_end"]))
    of: Callable[[Row], tuple[Any, ...]] = lambda row: (row["n"], row["total"])

    def check(self, name: str, results: list[Row]) -> None:
        """Results are among the exact ones, those of a key in order of time, the last one the last that there is."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in results:
            found[row["k"]].append(row)
        assert found.keys() == self.exact.keys(), name
        for key, own in found.items():
            times = [self.time(row) for row in own]
            assert times == sorted(set(times)), (name, key)
            assert [self.of(row) for row in own] == [self.exact[key][each] for each in times], (name, key)
            assert times[-1] == max(self.exact[key]), (name, key)


def four(row: Row) -> tuple[Any, ...]:
    return row["n"], row["total"], row["m"], row["other"]


def times_of(row: Row, *names: str) -> tuple[int, ...]:
    return tuple(micros(row[name]) for name in names)


def expected(inputs: Mapping[str, list[Row]]) -> dict[str, Expected]:
    s, t, u, p, r = (of_keys(inputs[name]) for name in "stupr")
    nested = {
        key: {time: (a[1] - b[1], c[1], a[0], b[0], c[0]) for time, (a, b, c) in latest(s[key], t[key], u[key])}
        for key in s.keys() & t.keys() & u.keys()
    }
    three = ("ts", "at", "third")
    both_ends = ("window_end", "at")
    return {
        "of_windows": Expected(both(s, t, of_windows), of=four),
        "queued_plain_windows": Expected(both(p, r, of_windows), of=four),
        "queued_plain_window": Expected({key: windows(own) for key, own in p.items()}),
        "over_join": Expected(both(s, t, over_join)),
        "over_near": Expected(both(s, t, over_near)),
        "session": Expected({key: sessions(own) for key, own in s.items()}),
        "third": Expected({key: third(own) for key, own in s.items()}),
        "as_of": Expected(both(s, t, as_of), lambda row: micros(row["ts"]), lambda row: (row["v"], row["w"])),
        "latest_windows": Expected(
            both(s, t, latest_windows),
            lambda row: max(times_of(row, *both_ends)),
            lambda row: (row["n"], row["m"], *times_of(row, *both_ends)),
        ),
        "nested": Expected(
            nested, lambda row: max(times_of(row, *three)), lambda row: (row["d"], row["w"], *times_of(row, *three))
        ),
    }


def run(host: Host, inputs: Mapping[str, list[Row]], queries: Mapping[str, str]) -> dict[str, list[Row]]:
    """The results of each query; what became of the rows is checked on the way."""
    declared = (f"CREATE QUERY {name} AS {text};\n" for name, text in queries.items())
    # Each batch is a micro-batch on Spark.
    sizes = (50,) if host.name == "spark" else (1, 7, 30, 80)
    pieces = {name: cut(rows, len(name), sizes) for name, rows in inputs.items()}
    opened = host.open(STREAMS + "".join(declared), pieces)
    report = opened.run()
    for name, source in report.sources.items():
        assert (source.received, source.late, source.buffered) == (len(inputs[name]), 0, 0)
        assert source.received == source.processed + source.superseded
    for title, queue in report.queues.items():
        assert queue.entered == queue.let_go + queue.superseded and not queue.waiting, title
    return {name: [row for each in tables for row in each.to_pylist()] for name, tables in opened.memory.items()}


ON_SPARK = ("of_windows", "queued_plain_window", "over_join", "of_three", "nested")
"""The queries that run on Spark, where each costs a second: one of each kind."""


@pytest.mark.slow
def test_results_are_exact_and_the_last_of_every_key_is_the_last_there_is(
    host: Host, inputs: dict[str, list[Row]]
) -> None:
    queries = {name: text for name, text in QUERIES.items() if host.name != "spark" or name in ON_SPARK}
    found = run(host, inputs, queries)
    for name, each in expected(inputs).items():
        if name in queries:
            each.check(name, found[name])
    check_three(inputs, found["of_three"])
    if host.name != "spark":
        check_left(inputs, found)
        check_plain(inputs, found["of_plain_windows"])
        check_united(inputs, found["united"])


def check_left(inputs: Mapping[str, list[Row]], found: Mapping[str, list[Row]]) -> None:
    """Each row of the left side has an answer; the last is that of the last rows, with nulls if they do not match."""
    s, t = of_keys(inputs["s"]), of_keys(inputs["t"])
    last = {row["k"]: (micros(row["ts"]), row["v"], row["w"]) for row in found["left"]}
    for key, own in s.items():
        other = t.get(key, [(0, 100)])[-1][1]
        assert last[key] == (*own[-1], other if own[-1][1] > other and key < "d" else None)
    ended = {row["k"]: row for row in found["left_windows"]}
    for key, own in s.items():
        left, right = windows(own), windows(t.get(key, ()))
        # A later window of the other side says that the last one has no match.
        match = right.get(max(left), (None, None)) if max(right, default=0) <= max(left) else (None, None)
        assert four(ended[key]) == (*left[max(left)], *match)


def check_plain(inputs: Mapping[str, list[Row]], results: list[Row]) -> None:
    """Without a queue every pair of windows is given."""
    exact = both(of_keys(inputs["p"]), of_keys(inputs["r"]), of_windows)
    found = {(row["k"], micros(row["window_end"])): four(row) for row in results}
    assert found == {(key, time): each for key, own in exact.items() for time, each in own.items()}


def check_united(inputs: Mapping[str, list[Row]], results: list[Row]) -> None:
    """Windows of two streams update each other: of two that end together the one that came first stays."""
    exact: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for name, length, slide in (("s", LENGTH, SLIDE), ("t", 30 * SECOND, 30 * SECOND)):
        for key, own in of_keys(inputs[name]).items():
            for end, each in windows(own, length, slide).items():
                exact[key, end].append(each)
    last: dict[str, int] = {}
    for row in results:
        end = micros(row["window_end"])
        assert end > last.get(row["k"], -LENGTH)
        assert (row["n"], row["total"]) in exact[row["k"], end]
        last[row["k"]] = end
    assert last == {key: max(end for owner, end in exact if owner == key) for key, _ in exact}


def check_three(inputs: Mapping[str, list[Row]], results: list[Row]) -> None:
    """A join of streams answers as rows come: each result is of rows that came, and the last of the last ones."""
    sides = [of_keys(inputs[name]) for name in "stu"]
    last: dict[str, Row] = {}
    for row in results:
        for rows, name, value in zip(sides, ("ts", "at", "third"), "abc", strict=True):
            assert (micros(row[name]), row[value]) in rows[row["k"]]
            assert row["k"] not in last or row[name] >= last[row["k"]][name]
        last[row["k"]] = row
    assert last.keys() == sides[0].keys() & sides[1].keys() & sides[2].keys()
    for key, row in last.items():
        assert tuple(row[value] for value in "abc") == tuple(rows[key][-1][1] for rows in sides)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "virtual"])
def test_streams_that_are_joined_have_queues_of_their_own(name: Literal["local", "virtual"]) -> None:
    inputs = {stream: rows_of(seed, 120) for seed, stream in enumerate("stu", 3)}
    streams = "".join(
        STREAM.format(name=stream, key="UPDATE KEY (k)").replace("iterable", f"iterable WITH (queue = '{policy}')")
        for stream, policy in (("s", "append"), ("t", "linecutting"), ("u", "auto"))
    )
    opened = Host(name).open(
        f"{streams} CREATE QUERY joined AS {QUERIES['of_three']}", {each: cut(rows, 1) for each, rows in inputs.items()}
    )
    report = opened.run()
    assert {title: each.policy for title, each in report.queues.items()} == {
        "joined": "append", "joined#2": "linecutting", "joined#3": "auto"
    }  # fmt: skip
    assert report.queues["joined"].superseded == 0
    check_three(inputs, [row for each in opened.memory["joined"] for row in each.to_pylist()])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["of_windows", "queued_plain_windows", "over_join", "of_three", "nested", "third"])
def test_restarts_and_budgets_change_no_result(name: str) -> None:
    inputs = {stream: rows_of(seed, 120) for seed, stream in enumerate("stupr", 7)}
    for seed in range(3):
        draw = Random(seed)
        driver = Driver(parse_network(f"{STREAMS} CREATE QUERY q AS {QUERIES[name]}"), draw.choice((None, 1)))
        pieces = {stream: list(cut(inputs[stream], seed)) for stream in driver.schemas}
        while waiting := [stream for stream, some in pieces.items() if some]:
            driver.executor.queue_gate.open(draw.choice((None, 0, 1, 3)))
            stream = draw.choice(waiting)
            driver.push(stream, pieces[stream].pop(0).to_pylist())
            if draw.random() < 0.3:
                driver.restart()
        driver.end()
        if name == "of_three":
            check_three(inputs, driver.results)
        else:
            expected(inputs)[name].check(name, driver.results)


COUNTED = {
    "trailing": "SELECT window, k, count(*) AS n, sum(v) AS total, max(ts) AS at FROM s [RANGE 9 SECONDS] GROUP BY k",
    "rows": "SELECT window, k, count(*) AS n, sum(v) AS total, max(ts) AS at FROM s [ROWS 20 SLIDE 5] GROUP BY k",
    "own_rows": "SELECT window, k, count(*) AS n, sum(v) AS total, max(ts) AS at FROM s [ROWS 4 PARTITION BY k]",
    "calendar": "SELECT k, date_trunc('year', ts) AS at, count(*) AS n, sum(v) AS total FROM s GROUP BY k, 2",
    "recent": "SELECT t.k, t.v AS n, s.v AS total, t.ts AS at FROM s SEQ t ON s.k = t.k MODE RECENT",
}


@pytest.mark.slow
def test_windows_of_all_kinds_are_those_over_all_rows() -> None:
    inputs = {stream: rows_of(seed, 120) for seed, stream in enumerate("st", 3)}
    # Rows are counted in order of arrival, so they come at once.
    pieces = {stream: cut(rows, 1, (120,)) for stream, rows in inputs.items()}
    every = {f"all_{name}": f"{text} WITH (queue = 'append')" for name, text in COUNTED.items()}
    declared = "".join(f"CREATE QUERY {name} AS {text};" for name, text in {**COUNTED, **every}.items())
    found = Host("local").run(STREAMS + declared, pieces)
    for name in COUNTED:
        exact: dict[str, list[Row]] = defaultdict(list)
        for row in found[f"all_{name}"]:
            exact[row["k"]].append(row)
        last = {row["k"]: row for row in found[name]}
        assert last.keys() == exact.keys(), name
        for key, row in last.items():
            assert row in exact[key] and row["at"] == max(each["at"] for each in exact[key]), (name, key)
