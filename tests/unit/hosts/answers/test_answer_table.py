"""The latest answer of each key is what a dictionary of the newest rows would hold, however rows are batched."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.errors import RequestError
from millrace.hosts.answers.answer_files import AnswerFiles, folder_of, kept_name, part_name, stored_answers, write
from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.answers.subscriptions import Subscription
from millrace.kernel.elements import TIME

SCHEMA = pa.schema([("n", pa.int64()), ("k", pa.string()), ("j", pa.int32())])
ROW = st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 3), st.integers(0, 5))
"""A key of two columns, and a time."""


def table(rows: list[tuple[Any, ...]], first: int = 0) -> pa.Table:
    """Rows (k, j, time), numbered by n."""
    n, k, j, times = [*range(first, first + len(rows))], *zip(*rows, strict=True)
    return pa.table([n, k, j, times], schema=SCHEMA.append(pa.field(TIME, pa.int64())))


def newest(rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    """The number of each key's newest row, as a dictionary would have it."""
    found: dict[tuple[Any, ...], tuple[int, int]] = {}
    for n, (k, j, time) in enumerate(rows):
        if (k, j) not in found or time >= found[k, j][1]:
            found[k, j] = (n, time)
    return {key: n for key, (n, _) in found.items()}


def answers(rows: pa.Table) -> dict[tuple[Any, ...], int]:
    return {(row["k"], row["j"]): row["n"] for row in rows.to_pylist()}


@given(batches=st.lists(st.lists(ROW, min_size=1, max_size=12), max_size=20), seed=st.integers(0, 9))
def test_the_latest_rows_are_those_of_a_dictionary_and_so_are_the_changes(batches: list[Any], seed: int) -> None:
    latest, random = AnswerTable("q", SCHEMA, ("k", "j")), np.random.default_rng(seed)
    all_rows: list[Any] = []
    followed: dict[tuple[Any, ...], int] = {}
    version = 0
    for batch in batches:
        latest.put(table(batch, len(all_rows)))
        all_rows += batch
        if random.random() < 0.4:
            changed, version = latest.since(version)
            assert len(answers(changed)) == changed.num_rows, "a key is given once"
            followed |= answers(changed)
            assert followed == newest(all_rows)
    expected = newest(all_rows)
    assert answers(latest.table()) == expected
    assert len(latest) == len(expected)
    assert [(row["k"], row["j"]) for row in latest.table().to_pylist()] == list(
        dict.fromkeys((k, j) for k, j, _ in all_rows)
    )
    assert latest.table().column_names == ["k", "j", "n"]
    for (k, j), n in expected.items():
        assert latest.row((k, j)) == latest.row({"j": j, "k": k}) == {"k": k, "j": j, "n": n}
    assert latest.row(("z", 1)) is None


@pytest.mark.slow
def test_superseded_rows_do_not_pile_up() -> None:
    latest = AnswerTable("q", SCHEMA, ("j",))
    for number in range(5_000):
        latest.put(table([("a", number % 100, number)] * 3, 3 * number))
        len(latest)
    assert sum(map(len, latest._blocks)) < 2 * 100
    assert len(latest._blocks) < 8


def test_a_query_without_key_columns_has_one_answer() -> None:
    latest = AnswerTable("q", SCHEMA, ())
    assert (latest.table().num_rows, latest.row(())) == (0, None)
    latest.put(table([("a", 1, 1), ("b", 2, 2), ("c", 3, 0)]))
    assert latest.table().to_pylist() == [{"n": 1, "k": "b", "j": 2}]
    assert latest.row(()) == {"n": 1, "k": "b", "j": 2}


def test_a_key_may_be_given_as_text_and_a_wrong_one_says_what_to_give() -> None:
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
    latest = AnswerTable("q", schema, ("at",))
    at = datetime(2024, 1, 1, tzinfo=UTC)
    latest.put(pa.table({"at": pa.array([at], schema.field("at").type), "n": [7]}))
    assert latest.row("2024-01-01 00:00:00") == latest.row(at) == {"at": at, "n": 7}
    with pytest.raises(RequestError, match=r'key "at" of query "q" is a timestamp.*not \'noon\''):
        latest.row("noon")
    with pytest.raises(RequestError, match='the key of query "q" is at, and was given as') as refused:
        latest.row({"time": at})
    assert refused.value.hint == 'Give a value of "at".'


# Subscriptions


def test_a_slow_subscriber_gets_the_newest_answer_of_each_key_and_no_backlog() -> None:
    latest = AnswerTable("q", SCHEMA, ("k",))
    quick, slow = Subscription(latest), Subscription(latest)
    seen = []
    for number in range(1_000):
        latest.put(table([("ab"[number % 2], 0, number)], number))
        seen.append(quick.take(0))
    assert [rows.num_rows for rows in seen if rows is not None] == [1] * 1_000
    rows = slow.take(0)
    assert rows is not None and sorted(rows.column("n").to_pylist()) == [998, 999]
    assert slow.take(0) is None
    assert not slow.ended


def test_a_subscription_waits_for_changes_and_ends_with_its_query() -> None:
    latest = AnswerTable("q", SCHEMA, ("k",))
    latest.put(table([("a", 0, 0)]))
    seen: list[int] = []
    with Subscription(latest, present=False) as later:
        assert later.take(0.01) is None
        reading = Thread(target=lambda: seen.extend(n for rows in later for n in rows.column("n").to_pylist()))
        reading.start()
        for number in range(1, 50):
            latest.put(table([("a", 0, number)], number))
        latest.close()
        reading.join(300)
        assert not reading.is_alive() and later.ended
    assert seen[-1] == 49 and seen == sorted(seen)
    assert Subscription(latest).take(0) is not None, "what stands can be read after the end"


def test_rows_that_are_older_than_what_stands_are_no_change() -> None:
    latest = AnswerTable("q", SCHEMA, ("k",))
    latest.put(table([("a", 0, 5)]))
    follows = Subscription(latest, present=False)
    latest.put(table([("a", 0, 4)], 1))
    assert follows.take(0.01) is None


def test_a_closed_subscription_lets_go_of_one_who_waits() -> None:
    latest = AnswerTable("q", SCHEMA, ("k",))
    follows = Subscription(latest)
    calls: list[pa.Table] = []
    called = Subscription(latest).call(calls.append)
    waiting = Thread(target=lambda: calls.extend(follows))
    waiting.start()
    follows.close()
    waiting.join(300)
    assert not waiting.is_alive() and calls == []
    called.close()
    assert called.take() is None


# Files


@given(batches=st.lists(st.lists(ROW, max_size=12), min_size=1, max_size=25), died=st.booleans())
def test_files_hold_what_was_committed(tmp_path_factory: Any, batches: list[Any], died: bool) -> None:
    folder: Path = folder_of(tmp_path_factory.mktemp("state"), "q")
    latest = AnswerTable("q", SCHEMA, ("k", "j"))
    files = AnswerFiles(folder, latest)
    all_rows: list[Any] = []
    for epoch, batch in enumerate(batches):
        if batch:
            latest.put(table(batch, len(all_rows)))
            all_rows += batch
        files.stage(epoch)
        files.sweep()
    kept, committed = files.kept(), len(batches) - 1
    if died:
        # After it wrote, before it committed: what was merged is still there, and what it wrote does not count.
        latest.put(table([("a", 0, 9)] * 5, 1_000))
        files.stage(len(batches))
    found = stored_answers(folder, kept)
    assert found is not None and found.query == "q"
    assert answers(found.table()) == newest(all_rows)
    again = AnswerTable("q", SCHEMA, ("k", "j"))
    files = AnswerFiles(folder, again)
    files.load(kept)
    assert answers(again.table()) == newest(all_rows)
    again.put(table([("c", 3, 9)], 2_000))
    files.stage(committed + 1)
    files.sweep()
    after = stored_answers(folder, files.kept())
    assert after is not None and answers(after.table()) == newest(all_rows) | {("c", 3): 2_000}


def test_a_save_writes_what_changed_and_there_are_few_files(tmp_path: Path) -> None:
    latest = AnswerTable("q", SCHEMA, ("j",))
    files, written = AnswerFiles(tmp_path, latest), 0
    latest.put(table([("a", key, 0) for key in range(10_000)]))
    for epoch in range(200):
        latest.put(table([("a", key, epoch + 1) for key in range(epoch, epoch + 10)], 20_000 + 10 * epoch))
        files.stage(epoch)
        files.sweep()
        written += files._files[-1].rows if epoch else 0
    assert written < 200 * 10 * 12, "a change is written a few times, not all keys each time"
    assert len(list(tmp_path.iterdir())) < 10


def test_a_query_that_takes_a_name_over_does_not_get_the_answers_of_the_one_before(tmp_path: Path) -> None:
    for epoch, rows in enumerate([[("a", 1, 1)], []]):
        latest = AnswerTable("q", SCHEMA, ("k",))
        if rows:
            latest.put(table(rows))
        files = AnswerFiles(folder_of(tmp_path, "q"), latest)
        files.stage(epoch)
    found = stored_answers(folder_of(tmp_path, "q"), files.kept())
    assert found is not None and found.table().num_rows == 0


def test_what_tasks_add_counts_after_what_was_merged(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "q")
    folder.mkdir(parents=True)

    def add(epoch: int, partition: int, key: str, n: int) -> dict[str, str]:
        path = folder / part_name(epoch, partition)
        return {kept_name(path): write(path, table([(key, 0, n)], n), "q", ("k",))}

    committed = {**add(0, 0, "a", 1), **add(0, 1, "b", 2)}
    add(1, 0, "a", 3)
    latest = AnswerTable("q", SCHEMA, ("k",))
    files = AnswerFiles(folder, latest)
    files.load(committed)
    assert latest.row("a") == {"k": "a", "n": 1, "j": 0}, "epoch 1 is not committed"
    files.stage(0)
    files.sweep()
    assert [path.name for path in sorted(folder.iterdir())] == ["00000000-00000000.arrow"]
    add(0, 0, "a", 1)
    found = stored_answers(folder, {**files.kept(), **add(1, 0, "a", 3)})
    assert found is not None and {key: found.row(key)["n"] for key in "ab"} == {"a": 3, "b": 2}  # type: ignore[index]
