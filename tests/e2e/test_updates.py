"""Update queries from the command line: in steps, explained, refused, and killed in the middle of their work."""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import Started, millrace, wait_for

pytestmark = pytest.mark.slow

SYMBOLS, VENUES = ("A", "B", "C", "D", "E"), 40
KEYS = [(symbol, venue) for symbol in SYMBOLS for venue in range(VENUES)]
SLOW = """
import time

def slowly(price):
    time.sleep(0.0005)
    return price
"""
STREAMS = """
CREATE FUNCTION slowly(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'slow:slowly';
CREATE STREAM prices (symbol STRING, venue INT, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol, venue)
  FROM csv OPTIONS (path 'in');
CREATE STREAM plain (symbol STRING, venue INT, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'in');
CREATE SINK answers TO csv OPTIONS (path 'out');
"""
QUERY = "CREATE QUERY valued WITH ({}) INTO answers AS SELECT symbol, venue, slowly(price) AS price FROM prices;"
RUN = ["run", "prices.sql", "--on", "local", "--checkpoint", "state"]
Key = tuple[str, int]


def project(folder: Path, query: str) -> None:
    (folder / "in").mkdir()
    (folder / "slow.py").write_text(SLOW)
    (folder / "prices.sql").write_text(STREAMS + query)


def add_file(folder: Path, number: int, keys: list[Key]) -> None:
    """An update of each of the keys at a second; the price says at which."""
    lines = [f"{symbol},{venue},{number},2024-01-01 00:{number // 60:02d}:{number % 60:02d}" for symbol, venue in keys]
    hidden = folder / "in" / f".{number:04d}.csv"
    hidden.write_text("\n".join(["symbol,venue,price,ts", *lines]) + "\n")
    hidden.replace(folder / "in" / f"{number:04d}.csv")


def answers(folder: Path) -> list[tuple[Key, float]]:
    """All answers in the order in which they were given."""
    found = []
    for path in sorted((folder / "out").glob("part-*")):
        with path.open() as file:
            found += [((row["symbol"], int(row["venue"])), float(row["price"])) for row in csv.DictReader(file)]
    return found


def went_on(folder: Path, before: dict[str, int]) -> bool:
    """True if there are more answers of each queue than before."""
    return all(len(answers(folder / queue)) > count for queue, count in before.items())


def last_of(given: list[tuple[Key, float]]) -> dict[Key, float]:
    """The last answer of each key, none of which goes back or comes twice."""
    found: dict[Key, float] = {}
    for key, price in given:
        assert price > found.get(key, -1), "a key goes back, or an answer is given twice"
        found[key] = price
    return found


def ended(folder: Path, *options: str) -> dict[str, Any]:
    """The summary of a run that ends by itself."""
    ran = millrace(*RUN, *options, "--json", folder=folder)
    assert ran.returncode == 0, ran.stderr
    summary: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])["summary"]
    return summary


@pytest.mark.parametrize("queue", ["update_fifo", "inplace", "linecutting", "auto"])
def test_a_run_in_steps_gives_the_last_value_of_every_key_after_each(tmp_path: Path, queue: str) -> None:
    project(tmp_path, QUERY.format(f"queue = '{queue}'"))
    for number in range(5):
        add_file(tmp_path, number, KEYS)
    first = ended(tmp_path, "--available-now")
    given = answers(tmp_path)
    assert last_of(given) == dict.fromkeys(KEYS, 4.0)
    assert first["sources"]["prices"]["received"] == 5 * len(KEYS)
    changed = KEYS[::3]
    for number in range(5, 9):
        add_file(tmp_path, number, changed)
    second = ended(tmp_path, "--available-now")
    assert last_of(answers(tmp_path)) == dict.fromkeys(KEYS, 4.0) | dict.fromkeys(changed, 8.0)
    assert {key for key, _ in answers(tmp_path)[len(given) :]} == set(changed), "nothing of the first step comes again"
    source, own = second["sources"]["prices"], second["queues"]["valued"]
    assert source["received"] == source["processed"] + source["superseded"] == 5 * len(KEYS) + 4 * len(changed)
    assert (source["processed"], own["waiting"]) == (len(answers(tmp_path)), 0)
    assert own["keys"] == len(KEYS)
    assert len(answers(tmp_path)) == own["let_go"] == own["entered"] - own["superseded"]
    if queue != "auto":
        assert own["superseded"] > 0
    asked = millrace("latest", "state", "valued", "--key", *map(str, KEYS[0]), "--json", folder=tmp_path)
    assert json.loads(asked.stdout) == {"symbol": "A", "venue": 0, "price": 8.0}


COMPOSED = """
CREATE QUERY three AS SELECT a.symbol, a.venue, a.price + b.price + c.price AS total
  FROM prices AS a JOIN prices AS b USING (symbol, venue) JOIN prices AS c USING (symbol, venue);
CREATE QUERY spread AS SELECT a.symbol, a.venue, count(*) [RANGE 4 SECONDS SLIDE 4 SECONDS] AS n
  FROM prices AS a JOIN prices AS b USING (symbol, venue) GROUP BY a.symbol, a.venue;
CREATE QUERY counted WITH (queue = 'inplace') AS
  SELECT symbol, sum(price) AS total FROM plain [RANGE 4 SECONDS SLIDE 4 SECONDS] GROUP BY symbol;
"""


def test_joins_of_joins_and_windows_of_joins_go_on_from_their_checkpoint(tmp_path: Path) -> None:
    project(tmp_path, COMPOSED)
    for number in range(6):
        add_file(tmp_path, number, KEYS)
    ended(tmp_path, "--available-now")
    changed = KEYS[::3]
    for number in range(6, 9):
        add_file(tmp_path, number, changed)
    ended(tmp_path, "--until-end")

    def latest(query: str, value: str) -> dict[Key, float]:
        asked = millrace("latest", "state", query, "--json", folder=tmp_path)
        assert asked.returncode == 0, asked.stderr
        rows = [json.loads(line) for line in asked.stdout.splitlines()]
        return {(row["symbol"], row.get("venue", 0)): row[value] for row in rows}

    assert latest("three", "total") == dict.fromkeys(KEYS, 15.0) | dict.fromkeys(changed, 24.0)
    # Of a changed key second 8 is the last window's only row, of others seconds 4 and 5 are.
    assert latest("spread", "n") == dict.fromkeys(KEYS, 2) | dict.fromkeys(changed, 1)
    per_symbol = Counter(symbol for symbol, _ in changed)
    assert latest("counted", "total") == {(symbol, 0): 8.0 * count for symbol, count in per_symbol.items()}


def test_another_queue_takes_over_what_waits_in_a_checkpoint(tmp_path: Path) -> None:
    project(tmp_path, QUERY.format("queue = 'append', budget = '1 rows'"))
    for number in range(10):
        add_file(tmp_path, number, KEYS)
    with Started(*RUN, folder=tmp_path) as started:
        wait_for(lambda: answers(tmp_path))
        code, _, said = started.interrupt()
    assert code == 0, said
    before = answers(tmp_path)
    assert "rows wait" in said and len(before) < 10 * len(KEYS), "a run that is stopped keeps what waits"
    (tmp_path / "prices.sql").write_text(STREAMS + QUERY.format("queue = 'inplace'"))
    summary = ended(tmp_path, "--available-now")
    given = answers(tmp_path)
    assert given[: len(before)] == before
    assert last_of(given) == dict.fromkeys(KEYS, 9.0)
    assert len(given) <= len(before) + len(KEYS)
    assert summary["sources"]["prices"]["received"] == len(given) + summary["sources"]["prices"]["superseded"]


QUEUES = ("inplace", "linecutting", "update_fifo", "append")


def of_queue(queue: str) -> str:
    """A query by the name of its queue, with a sink of its own."""
    sink = f"CREATE SINK {queue}_answers TO csv OPTIONS (path '{queue}/out');"
    query = QUERY.format(f"queue = '{queue}', budget = '3 rows'").replace("INTO ", f"INTO {queue}_")
    return sink + query.replace("valued", queue)


def test_the_last_values_are_exact_though_a_run_was_killed(tmp_path: Path) -> None:
    project(tmp_path, "\n".join(map(of_queue, QUEUES)))
    number = 0
    for _ in range(3):
        # More than is worked off until the first commit, and more again while it runs.
        for _ in range(4):
            add_file(tmp_path, number, KEYS)
            number += 1
        before = {queue: len(answers(tmp_path / queue)) for queue in QUEUES}
        with Started(*RUN, folder=tmp_path) as started:
            wait_for(partial(went_on, tmp_path, before))
            add_file(tmp_path, number, KEYS)
            number += 1
            started.kill()
    summary = ended(tmp_path, "--until-end")
    assert summary["sources"]["prices"]["received"] == number * len(KEYS)
    for queue in QUEUES:
        own, given = summary["queues"][queue], answers(tmp_path / queue)
        assert last_of(given) == dict.fromkeys(KEYS, number - 1.0), queue
        assert own["entered"] == number * len(KEYS) == own["let_go"] + own["superseded"]
        assert (own["waiting"], own["let_go"]) == (0, len(given))
        if queue == "append":
            assert Counter(key for key, _ in given) == dict.fromkeys(KEYS, number), "every row, once"
        else:
            assert own["superseded"] > 0


EXPLAINED = {
    "": "update queue by symbol, venue, inplace",
    "queue = 'linecutting', budget = '5 rows'": "update queue by symbol, venue, linecutting",
    "queue = 'auto'": "update queue by symbol, venue, auto",
    "queue = 'update_fifo', baseline = 'naive_memory'": "update queue by symbol, venue, update_fifo",
    "queue = 'append'": "append queue by symbol, venue, append",
    "queue = 'append_shed', keep = 0.5": "append queue by symbol, venue, append_shed",
}


def test_explain_shows_the_queue_of_every_query(tmp_path: Path) -> None:
    queries = [
        f"CREATE QUERY q{number} {f'WITH ({options})' if options else ''} AS SELECT symbol, venue, price FROM prices;"
        for number, options in enumerate(EXPLAINED)
    ]
    window = "SELECT symbol, venue, count(*) AS n FROM prices [RANGE 9 SECONDS SLIDE 3 SECONDS] GROUP BY symbol, venue"
    project(tmp_path, "\n".join([*queries, f"CREATE QUERY windows WITH (update_window = 'lazy') AS {window};"]))
    told = millrace("explain", "prices.sql", folder=tmp_path)
    assert told.returncode == 0, told.stderr
    *plain, windows, _ = told.stdout.split("\nquery ")
    for part, words in zip(plain, EXPLAINED.values(), strict=True):
        assert words in part
    assert "window queue by symbol, venue" in windows and "commits to the newest window that is complete" in windows


SELECT = "SELECT symbol, venue, price FROM prices"
REFUSED = {
    f"WITH (queue = 'fifo') AS {SELECT}": ('option "queue" cannot be "fifo"', "It takes append,"),
    f"WITH (keep = 0.5) AS {SELECT}": ('option "keep" has no effect', "queue = 'append_shed'"),
    f"WITH (queue = 'append_shed', keep = 2) AS {SELECT}": ('option "keep"', "1"),
    f"WITH (update_window = 'lazy') AS {SELECT}": ('option "update_window" has no effect', "windows"),
    f"WITH (budget = 'much') AS {SELECT}": ('option "budget" cannot be "much"', "'500 rows'"),
    f"WITH (baseline = 'huge_memory') AS {SELECT}": ('baseline "huge_memory" is unknown', "naive_memory"),
    "WITH (queue = 'inplace') AS SELECT symbol, price FROM plain": (
        'rows of "plain" have no key, so that none replaces another',
        "Declare UPDATE KEY",
    ),
    "AS SELECT * FROM prices FULL JOIN prices AS p USING (symbol, venue)": (
        "FULL JOIN is not supported yet over update streams",
        "Write LEFT JOIN",
    ),
    "AS SELECT symbol, price FROM prices": ('the update key "venue" is not selected', "add venue"),
    "AS SELECT DISTINCT symbol, venue, ts FROM prices": ("DISTINCT has no meaning", "queue = 'append'"),
    "AS SELECT symbol, count(*) AS n FROM prices [RANGE 9 SECONDS SLIDE 3 SECONDS] GROUP BY symbol": (
        "GROUP BY does not contain the update key",
        "add venue",
    ),
    "AS SELECT p.symbol, p.venue FROM prices AS p JOIN plain AS o ON p.symbol = o.symbol AND p.venue = o.venue": (
        '"prices" is an update stream and "plain" is not',
        'Declare UPDATE KEY for "plain"',
    ),
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_has_no_meaning_for_updates_is_refused_before_anything_runs(tmp_path: Path, query: str) -> None:
    project(tmp_path, f"CREATE QUERY valued {query};")
    refused = millrace(*RUN, "--available-now", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    fact, hint = refused.stderr.split("\nhint: ")
    assert REFUSED[query][0] in fact
    assert REFUSED[query][1] in hint
    assert not (tmp_path / "state").exists()
