"""Streams that progress by a BIGINT or a DATE: every window and join, against lists of Python."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.hosts.run_options import HostName
from millrace.hosts.why.lag import Lag
from millrace.testing import Bench
from millrace.testing.hosts import Host
from tests.e2e.commands import RunOn

Row = dict[str, Any]
EPOCH = dt.date(1970, 1, 1)
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("v", pa.int32()), ("e", pa.int64())])
COLUMNS = "k STRING, n BIGINT, v INT, e BIGINT"
NUMBERED = "".join(f"CREATE STREAM {name} ({COLUMNS}) TIMESTAMP BY n DISORDER 5 FROM iterable;\n" for name in "ab")


def rows(seed: int, count: int = 80) -> list[Row]:
    """Rows whose numbers go from below zero up, each at most 5 behind the greatest before it."""
    rnd = random.Random(seed)
    made = [(2 * each - 60 - rnd.randint(0, 5), each) for each in range(count)]
    return [{"k": rnd.choice("xy"), "n": n, "v": v, "e": n + rnd.randint(0, 9)} for n, v in made]


A, B = rows(1), rows(2)
INPUTS = {"a": pa.Table.from_pylist(A, SCHEMA), "b": pa.Table.from_pylist(B, SCHEMA)}


def towards_zero(n: int, by: int) -> int:
    return int(math.copysign(abs(n) // by, n))


def windows(length: int, slide: int) -> Counter[tuple[Any, ...]]:
    starts = range(-200, 300)
    held = [(s, s + length, r["k"]) for s in starts if s % slide == 0 for r in A if s <= r["n"] < s + length]
    return Counter((*group, held.count(group)) for group in set(held))


def sessions(gap: int) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for key in "xy":
        open_ = sorted(row["n"] for row in A if row["k"] == key)
        while open_:
            size = next((i for i in range(1, len(open_)) if open_[i] - open_[i - 1] >= gap), len(open_))
            found[open_[0], open_[size - 1] + gap, key, size] += 1
            open_ = open_[size:]
    return found


def trailing(reach: int) -> Counter[tuple[Any, ...]]:
    def last(row: Row) -> int:
        return sum(r["k"] == row["k"] and row["n"] - reach <= r["n"] <= row["n"] for r in A)

    return Counter((row["n"] - reach, row["n"], row["k"], last(row)) for row in A)


def grouped(function: Callable[[int], int]) -> Counter[tuple[Any, ...]]:
    values = sorted(function(row["n"]) for row in A)
    return Counter((value, len(list(group))) for value, group in groupby(values))


def pairs(match: Callable[[Row, Row], bool]) -> Counter[tuple[Any, ...]]:
    return Counter((a["v"], b["v"]) for a in A for b in B if a["k"] == b["k"] and match(a, b))


def latest(reach: int) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for a in A:
        before = [b for b in B if b["k"] == a["k"] and a["n"] - reach <= b["n"] <= a["n"]]
        if before:
            found[a["v"], max(before, key=lambda b: (b["n"], b["v"]))["v"]] += 1
    return found


JOINED = "SELECT x.v, y.v AS w FROM a x JOIN b y ON x.k = y.k AND"
CASES: dict[str, tuple[str, Callable[[], Counter[tuple[Any, ...]]]]] = {
    "sliding": ("SELECT window, k, count(*) AS c FROM a [RANGE 10 SLIDE 5 WA n] GROUP BY k", lambda: windows(10, 5)),
    "ragged": ("SELECT window, k, count(*) AS c FROM a [RANGE 7 SLIDE 3] GROUP BY k", lambda: windows(7, 3)),
    "sessions": ("SELECT window, k, count(*) AS c FROM a [SESSION 3] GROUP BY k", lambda: sessions(3)),
    "trailing": ("SELECT window, k, count(*) AS c FROM a [RANGE 10] GROUP BY k", lambda: trailing(10)),
    "div": ("SELECT n div 10 AS g, count(*) AS c FROM a GROUP BY 1", lambda: grouped(lambda n: towards_zero(n, 10))),
    "floor": ("SELECT floor(n / 10) AS g, count(*) AS c FROM a GROUP BY 1", lambda: grouped(lambda n: n // 10)),
    "shifted": (
        "SELECT floor((n + 3) / 10) AS g, count(*) AS c FROM a GROUP BY 1",
        lambda: grouped(lambda n: (n + 3) // 10),
    ),
    "shifted div": (
        "SELECT (3 + n) div 10 AS g, count(*) AS c FROM a GROUP BY 1",
        lambda: grouped(lambda n: towards_zero(n + 3, 10)),
    ),
    "moved": ("SELECT n + 7 AS g, count(*) AS c FROM a GROUP BY n + 7", lambda: grouped(lambda n: n + 7)),
    "scaled": ("SELECT n * 3 AS g, count(*) AS c FROM a GROUP BY n * 3", lambda: grouped(lambda n: 3 * n)),
    "multiple": ("SELECT 1 + 2 * n AS g, count(*) AS c FROM a GROUP BY 1", lambda: grouped(lambda n: 1 + 2 * n)),
    "instants": ("SELECT n, count(*) AS c FROM a GROUP BY n", lambda: grouped(lambda n: n)),
    "band": (
        f"{JOINED} y.n BETWEEN x.n - 2 AND x.n + 5",
        lambda: pairs(lambda a, b: a["n"] - 2 <= b["n"] <= a["n"] + 5),
    ),
    "distance": (f"{JOINED} abs(x.n - y.n) < 3", lambda: pairs(lambda a, b: abs(a["n"] - b["n"]) < 3)),
    "equal": (f"{JOINED} x.n = y.n", lambda: pairs(lambda a, b: a["n"] == b["n"])),
    "quotients": (
        f"{JOINED} x.n div 10 = y.n div 10",
        lambda: pairs(lambda a, b: towards_zero(a["n"], 10) == towards_zero(b["n"], 10)),
    ),
    "shifted quotients": (
        f"{JOINED} (x.n + 3) div 10 = (y.n + 3) div 10",
        lambda: pairs(lambda a, b: towards_zero(a["n"] + 3, 10) == towards_zero(b["n"] + 3, 10)),
    ),
    "floors": (
        f"{JOINED} floor((x.n + 3) / 10) = floor((y.n + 3) / 10)",
        lambda: pairs(lambda a, b: (a["n"] + 3) // 10 == (b["n"] + 3) // 10),
    ),
    "until": (f"{JOINED} y.n >= x.n AND y.n < x.e + 1", lambda: pairs(lambda a, b: a["n"] <= b["n"] < a["e"] + 1)),
    "kept": (
        "SELECT x.v, y.v AS w FROM a [RANGE 3] x, b [RANGE 4] y WHERE x.k = y.k",
        lambda: pairs(lambda a, b: a["n"] - 4 <= b["n"] <= a["n"] + 3),
    ),
    "as of": (
        "SELECT x.v, y.v AS w FROM a x ASOF JOIN b y ON y.n <= x.n AND x.k = y.k AND y.n >= x.n - 7",
        lambda: latest(7),
    ),
}  # fmt: skip


def counted(found: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("host", ["local", "virtual"])
def test_rows_that_progress_by_a_number_give_what_lists_give(host: HostName, name: str) -> None:
    query, expected = CASES[name]
    assert counted(Host(host).run(f"{NUMBERED} CREATE QUERY q AS {query};", INPUTS)["q"]) == expected()


@pytest.mark.spark
def test_rows_that_progress_by_a_number_give_the_same_on_spark(spark_session: Any) -> None:
    chosen = ("sliding", "sessions", "div", "quotients", "until", "as of")
    queries = "".join(f"CREATE QUERY q{place} AS {CASES[name][0]};\n" for place, name in enumerate(chosen))
    days = "CREATE STREAM d (day DATE) TIMESTAMP BY day DISORDER INTERVAL 5 DAYS FROM iterable;"
    queries += "CREATE QUERY days AS SELECT window_start, count(*) AS c FROM d [RANGE 7 DAYS SLIDE 7 DAYS];"
    dated = pa.table({"day": pa.array([row["n"] for row in A], pa.int32()).cast(pa.date32())})
    answers = Host("spark", lambda: spark_session).run(f"{NUMBERED} {days} {queries}", {**INPUTS, "d": dated})
    for place, name in enumerate(chosen):
        assert counted(answers[f"q{place}"]) == CASES[name][1](), name
    assert [row["c"] for row in sorted(answers["days"], key=lambda row: row["window_start"])] == weeks()


def weeks() -> list[int]:
    """How many rows each seven days since the epoch have."""
    numbers = Counter(row["n"] // 7 for row in A)
    return [numbers[each] for each in sorted(numbers)]


def day(number: int) -> dt.date:
    return EPOCH + dt.timedelta(days=number)


DATED = "".join(
    f"CREATE STREAM {name} (k STRING, d DATE, v INT, e DATE) TIMESTAMP BY d DISORDER INTERVAL 5 DAYS FROM iterable;\n"
    for name in "ab"
)
ON_DAYS = {
    "x.k = y.k AND y.d BETWEEN x.d - INTERVAL 2 DAYS AND x.d + INTERVAL 5 DAYS": lambda a, b: (
        a["n"] - 2 <= b["n"] <= a["n"] + 5
    ),
    "x.k = y.k AND x.d = y.d": lambda a, b: a["n"] == b["n"],
    "x.k = y.k AND date_trunc('month', x.d) = date_trunc('month', y.d)": lambda a, b: (
        day(a["n"]).replace(day=1) == day(b["n"]).replace(day=1)
    ),
    "x.k = y.k AND y.d >= x.d AND y.d < x.e": lambda a, b: a["n"] <= b["n"] < a["e"],
}


def dated(given: Sequence[Row]) -> pa.Table:
    return pa.table(
        {
            "k": [row["k"] for row in given],
            "d": [day(row["n"]) for row in given],
            "v": pa.array([row["v"] for row in given], pa.int32()),
            "e": [day(row["e"]) for row in given],
        }
    )


@pytest.mark.parametrize("on", ON_DAYS)
def test_days_are_joined_by_bands_parts_of_time_and_ends(on: str) -> None:
    query = f"{DATED} CREATE QUERY q AS SELECT x.v, y.v AS w FROM a x JOIN b y ON {on};"
    answer = Host("virtual").run(query, {"a": dated(A), "b": dated(B)})["q"]
    assert counted(answer) == pairs(ON_DAYS[on])


def test_days_are_windowed_and_grouped_as_the_times_at_which_they_begin() -> None:
    queries = (
        "CREATE QUERY weeks AS SELECT window, count(*) AS c FROM a [RANGE 7 DAYS SLIDE 7 DAYS WA d];"
        "CREATE QUERY moved AS SELECT date_trunc('week', d + INTERVAL 2 DAYS) AS g, count(*) AS c FROM a GROUP BY 1;"
        "CREATE QUERY single AS SELECT d, count(*) AS c FROM a GROUP BY d;"
    )
    answer = Host("local").run(DATED + queries, {"a": dated(A), "b": dated(B)})
    assert [row["c"] for row in sorted(answer["weeks"], key=lambda row: row["window_start"])] == weeks()
    moved = [day(row["n"] + 2) for row in A]
    mondays = Counter(each - dt.timedelta(days=each.weekday()) for each in moved)
    assert {row["g"].date(): row["c"] for row in answer["moved"]} == mondays
    assert {row["d"]: row["c"] for row in answer["single"]} == Counter(day(row["n"]) for row in A)


def test_a_shifted_time_is_grouped_like_a_time() -> None:
    bench = Bench(
        "CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;"
        "CREATE QUERY q AS SELECT date_trunc('minute', ts + INTERVAL 30 SECONDS) AS m, count(*) AS c FROM s GROUP BY 1;"
    )
    bench.push("s", "ts \n 00:00:10 \n 00:00:30 \n 00:01:29 \n 00:01:30")
    assert [(row["m"].minute, row["c"]) for row in bench.results("q")] == [(0, 1), (1, 2)]


def test_a_row_further_behind_than_its_number_allows_is_late_and_the_clock_is_not_asked() -> None:
    bench = Bench(f"{NUMBERED} CREATE QUERY q AS SELECT n FROM a;")
    bench.push("a", [{"k": "x", "n": n, "v": 0, "e": 0} for n in (2**62, 2**62 - 5, 2**62 - 6)])
    source = bench.metrics().sources["a"]
    assert (source.late, source.quarantined, source.bound) == (1, 0, 2**62 - 5)


def test_a_late_number_counts_in_a_window_that_is_still_open() -> None:
    stream = "CREATE STREAM s (n BIGINT) TIMESTAMP BY n DISORDER 2 LATE BY WINDOW FROM iterable;"
    bench = Bench(f"{stream} CREATE QUERY q AS SELECT window, count(*) AS c FROM s [RANGE 10 SLIDE 10];")
    bench.push("s", [{"n": n} for n in (3, 14, 11, 5, 30)])
    assert [tuple(row.values()) for row in bench.results("q")] == [(0, 10, 1), (10, 20, 2)]
    assert bench.metrics().sources["s"].late == 1


def test_what_holds_a_number_back_is_said_in_numbers() -> None:
    bench = Bench(f"{NUMBERED} CREATE QUERY q AS SELECT window, count(*) AS c FROM a [RANGE 10 SLIDE 10];")
    bench.push("a", [{"k": "x", "n": 13, "v": 0, "e": 0}])
    text = str(Lag.of(bench.executor, bench.now, live=True, silent={"a": 0}))
    assert "bound has stood at 8" in text and "a row from 25 on releases the first of them" in text
    assert "the clock says nothing of a number" in text


def test_python_takes_numbers_where_rows_progress_by_one() -> None:
    net = mr.Network()
    a, b = (net.stream(name, COLUMNS, time="n", disorder=5, source=given) for name, given in (("a", A), ("b", B)))
    net.query("sliding", a.window(range=10, slide=5).group_by("k").agg(c="count(*)"))
    net.query("kept", a.join(b, "k", within={"left": 3, "right": 4}, names=("x", "y")).select("x.v", w="y.v"))
    net.query("as_of", a.asof_join(b, on="k", tolerance=7, names=("x", "y")).select("x.v", w="y.v"))
    handle = net.run(on="local", until="end")
    for query, case in (("sliding", "sliding"), ("kept", "kept"), ("as_of", "as of")):
        assert counted(handle.results(query).to_pylist()) == CASES[case][1](), query


@pytest.mark.parametrize(
    ("clauses", "query", "fact"),
    [
        ("TIMESTAMP BY n DISORDER INTERVAL 5 SECONDS", "SELECT n FROM a", "DISORDER is a length of time"),
        ("TIMESTAMP BY ts DISORDER 5", "SELECT n FROM a", "DISORDER is a number without a unit"),
        ("TIMESTAMP BY n ORDERED ETS ON DEMAND LULL 1 s", "SELECT n FROM a", "ETS goes by the clock"),
        ("TIMESTAMP BY n ORDERED MAX FUTURE SKEW 1 s", "SELECT n FROM a", "MAX FUTURE SKEW goes by the clock"),
        ("TIMESTAMP BY n ORDERED ALSO BY ts", "SELECT n FROM a", "not counted in the same unit"),
        ("TIMESTAMP BY v ORDERED", "SELECT n FROM a", "is INT, not TIMESTAMP, DATE or BIGINT"),
        ("TIMESTAMP BY n PUNCTUATED BY ts", "SELECT n FROM a", "PUNCTUATED BY takes a BIGINT"),
        ("TIMESTAMP BY n ORDERED", "SELECT count(*) FROM a [RANGE 1 s SLIDE 1 s]", "RANGE is a length of time"),
        ("TIMESTAMP BY ts ORDERED", "SELECT count(*) FROM a [RANGE 1 SLIDE 1]", "RANGE is a number without a unit"),
        ("TIMESTAMP BY n ORDERED", "SELECT count(*) FROM a GROUP BY n / 10", "group by n div 10; / gives a fraction"),
        ("TIMESTAMP BY n ORDERED", "SELECT n FROM a WITH (slack = '1 second')", "progress by a BIGINT"),
        ("TIMESTAMP BY n ORDERED", "SELECT x.n FROM a x JOIN t [RANGE 1 s] y ON x.v = y.v", "in the same unit"),
        (
            "TIMESTAMP BY n ORDERED",
            "SELECT v FROM a UNION SELECT v FROM t",
            "cannot mix rows that progress by a number",
        ),
    ],
)
def test_what_a_number_cannot_mean_is_refused(clauses: str, query: str, fact: str) -> None:
    streams = (
        f"CREATE STREAM a (n BIGINT, v INT, ts TIMESTAMP) {clauses} FROM iterable;"
        "CREATE STREAM t (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;"
    )
    with pytest.raises(mr.MillraceError, match=fact):
        Bench(f"{streams} CREATE QUERY q AS {query};")


def test_the_command_line_reads_numbers_and_days_from_files(run_on: RunOn, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,d\n1,2024-02-28\n4,2024-02-29\n12,2024-03-01\n")
    columns = "(n BIGINT, d DATE)"
    (tmp_path / "q.sql").write_text(
        f"CREATE STREAM a {columns} TIMESTAMP BY n DISORDER 2 FROM csv OPTIONS (path 'a.csv');\n"
        f"CREATE STREAM b {columns} TIMESTAMP BY d ORDERED FROM csv OPTIONS (path 'a.csv');\n"
        "CREATE QUERY tens AS SELECT window_start, window_end, count(*) AS c FROM a [RANGE 10 SLIDE 10];\n"
        "CREATE QUERY months AS SELECT date_trunc('month', d) AS m, count(*) AS c FROM b GROUP BY 1;\n"
    )
    done = run_on("local", "q.sql", "--until-end", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"window_start":0,"window_end":10,"c":2' in done.stdout
    assert '"window_start":10,"window_end":20,"c":1' in done.stdout
    assert '"greatest": "12"' in done.stdout + done.stderr
