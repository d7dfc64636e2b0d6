from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.connectors.opened_source import open_source
from millrace.connectors.partitioned_input import PartitionedInput
from millrace.connectors.source import Unreachable
from millrace.connectors.stream_input import Position, read_schema
from millrace.errors import MillraceError, RequestError, RunError
from millrace.kernel.elements import PARTITION
from tests.unit.connectors.shelf import DOWN, REMOVED, SHELVES, fill, stream_of


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * 1e6)


def opened(
    shelf: str, position: Position | None = None, *, live: bool = True, clock: Clock | None = None, options: str = ""
) -> PartitionedInput:
    stream = stream_of(shelf, clauses="ETS ON DEMAND LULL INTERVAL 1 SECOND", options=options)
    return PartitionedInput(stream, read_schema(stream, ["n"]), position, live=live, now=clock or Clock())


def numbers(source: PartitionedInput, limit: int | None = None) -> list[tuple[str, int]]:
    chunk = source.read(limit)
    if chunk is None:
        return []
    columns = chunk.rows.to_pydict()
    return list(zip(columns[PARTITION], columns["n"], strict=True))


def test_rows_name_the_partition_that_they_come_from() -> None:
    fill("named", {"a": [1, 2], "b": [3]})
    assert sorted(numbers(opened("named"))) == [("a", 1), ("a", 2), ("b", 3)]


@given(data=st.data())
def test_each_row_is_read_once_and_in_order_through_any_restarts(data: st.DataObject) -> None:
    fill("restarts", {"a": [], "b": []})
    clock = Clock()
    source, read = opened("restarts", clock=clock), []
    shelf, count = SHELVES["restarts"], 0
    for step in data.draw(st.lists(st.sampled_from(["put", "read", "restart", "grow"]), max_size=30)):
        clock.wait(1)
        if step == "put":
            name = data.draw(st.sampled_from(sorted(shelf)))
            added = data.draw(st.integers(1, 7))
            shelf[name] += range(count, count + added)
            count += added
        elif step == "read":
            read += numbers(source, data.draw(st.integers(1, 5)))
        elif step == "restart":
            # A position is plain data, as a checkpoint keeps it.
            source = opened("restarts", json.loads(json.dumps(source.position())), clock=clock)
        else:
            shelf.setdefault(f"c{len(shelf)}", [])
    for _ in range(2):
        clock.wait(1)
        numbers_left: Iterator[list[tuple[str, int]]] = iter(lambda: numbers(source, 5), [])
        read += [row for rows in numbers_left for row in rows]
    for name, all_ in shelf.items():
        assert [number for partition, number in read if partition == name] == all_


def test_a_bounded_run_reads_up_to_where_its_partitions_ended_at_the_start() -> None:
    fill("bounded", {"a": [1, 2]})
    source = opened("bounded", live=False)
    SHELVES["bounded"]["a"] += [3]
    assert numbers(source) == [("a", 1), ("a", 2)]
    assert (numbers(source), source.finished, source.pending) == ([], True, False)


def test_a_live_run_has_no_end() -> None:
    fill("live", {"a": [1]})
    clock = Clock()
    source = opened("live", clock=clock)
    assert numbers(source) == [("a", 1)]
    SHELVES["live"]["a"] += [2]
    clock.wait(1)
    assert (numbers(source), source.finished) == ([], False)
    assert numbers(source) == [("a", 2)]


def test_a_read_takes_no_more_rows_than_the_limit() -> None:
    fill("limit", {"a": [1, 2, 3], "b": [4, 5, 6]})
    source = opened("limit", options=", max_rows_per_trigger '2'")
    assert [len(numbers(source)) for _ in range(4)] == [2, 2, 2, 0]


def test_a_limit_is_a_number() -> None:
    fill("wrong", {})
    with pytest.raises(RequestError, match='option "max_rows_per_trigger" does not take "few"'):
        opened("wrong", options=", max_rows_per_trigger 'few'")


# Silence


def test_a_partition_with_unread_rows_is_settled_only_until_it_was_last_read() -> None:
    fill("busy", {"a": list(range(10)), "b": []})
    clock = Clock()
    source = opened("busy", clock=clock)
    assert source.settled is None
    clock.wait(1)
    read_at = clock.now
    numbers(source, 2)
    clock.wait(5)
    assert source.settled == read_at, "the rest of its rows may be old"
    numbers(source)
    assert source.settled == clock.now


def test_nothing_is_settled_while_a_partition_has_never_been_read() -> None:
    fill("never", {"a": list(range(10)), "b": [1]})
    source = opened("never")
    numbers(source, 3)
    assert source.settled is None, "of b nothing has been read"


def test_a_silent_source_is_settled_up_to_the_last_look() -> None:
    fill("silent", {"a": [], "b": []})
    clock = Clock()
    source = opened("silent", clock=clock)
    for _ in range(3):
        clock.wait(0.1)
        assert numbers(source) == []
        assert source.settled == clock.now


def test_a_source_that_does_not_answer_is_not_taken_for_silent() -> None:
    fill("down", {"a": []})
    clock = Clock()
    source = opened("down", clock=clock)
    numbers(source)
    before = source.settled
    DOWN.add("down")
    clock.wait(5)
    assert (numbers(source), source.settled) == ([], before)
    DOWN.discard("down")
    SHELVES["down"]["a"] += [1]
    clock.wait(5)
    numbers(source)
    assert numbers(source) == [("a", 1)]


def test_a_source_that_does_not_answer_for_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fill("long", {"a": []})
    clock = Clock()
    source = opened("long", clock=clock)
    monkeypatch.setattr("millrace.connectors.partitioned_input.PATIENCE", -1)
    DOWN.add("long")
    clock.wait(5)
    with pytest.raises(Unreachable, match="does not answer"):
        numbers(source)


def test_a_source_that_does_not_answer_at_the_start_is_an_error() -> None:
    fill("closed", {"a": []})
    DOWN.add("closed")
    with pytest.raises(Unreachable):
        opened("closed")


# What is gone


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: REMOVED.update(gone={"a": 3}), 'partition "a" begins at 3, and the run goes on at 2'),
        (lambda: SHELVES["gone"].pop("a"), 'partition "a" of stream "s" was read, and no longer exists'),
        (lambda: SHELVES["gone"]["a"].clear(), "ends at 0, and has been read up to 2"),
    ],
)
def test_a_run_does_not_go_on_where_rows_are_gone(change: object, message: str) -> None:
    fill("gone", {"a": [1, 2, 3, 4]})
    source = opened("gone")
    numbers(source, 2)
    assert callable(change)
    change()
    with pytest.raises(RunError, match=message):
        opened("gone", source.position())


def test_other_columns_are_read_from_where_the_input_is() -> None:
    fill("again", {"a": [1, 2, 3]})
    source = opened("again")
    numbers(source, 2)
    after = source.again(read_schema(source.stream, ["n", "ts"]), source.position())
    chunk = after.read()
    assert chunk is not None
    assert chunk.rows.schema.names == ["n", "ts", PARTITION]
    assert chunk.rows.column("n").to_pylist() == [3]


# Opening


def test_a_class_that_is_no_source_is_refused() -> None:
    stream = stream_of("x", options=", a 'b'")
    options = {**stream.connector.options, "source": "collections:Counter"}
    object.__setattr__(stream.connector, "options", options)
    with pytest.raises(RequestError, match="is not a class of sources"):
        open_source(stream, stream.schema)


def test_what_a_source_raises_when_it_is_opened_names_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise KeyError("shelf")

    monkeypatch.setattr("tests.unit.connectors.shelf.Shelf.__init__", refuse)
    with pytest.raises(MillraceError, match=r'the source of stream "s" cannot be opened: KeyError'):
        opened("any")
