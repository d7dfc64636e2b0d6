from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.stores import row_gather
from millrace.kernel.stores.row_blocks import ENOUGH, ENTRY, MOST, RowBlocks
from tests.unit.kernel.stores.test_key_table import whole


def rows_of(start: int, count: int) -> pa.RecordBatch:
    numbers = np.arange(start, start + count)
    return pa.record_batch({"__time": numbers, "name": [f"row {number}" for number in numbers.tolist()]})


def names(rows: pa.RecordBatch) -> list[int]:
    assert rows.column("__time").to_pylist() == [int(name[4:]) for name in rows.column("name").to_pylist()]
    found: list[int] = rows.column("__time").to_pylist()
    return found


def test_rows_are_taken_in_the_order_in_which_they_are_named() -> None:
    blocks = RowBlocks()
    entries = np.concatenate([blocks.add(rows_of(0, 5)), blocks.add(rows_of(5, 1)), blocks.add(rows_of(6, 3))])
    assert entries.tolist() == list(range(9))
    assert names(blocks.take(entries[3:7])) == [3, 4, 5, 6]
    assert names(blocks.take(entries[[7, 2, 5, 2]])) == [7, 2, 5, 2]
    assert names(blocks.take(entries[[5]])) == [5]
    assert names(blocks.take(entries[:0])) == []


def test_rows_of_large_and_small_blocks_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = RowBlocks()
    for start, count in ((0, MOST), (MOST, MOST), (2 * MOST, 5000), (2 * MOST + 5000, 3)):
        blocks.add(rows_of(start, count))
    wanted = np.random.default_rng(1).permutation(2 * MOST + 5003)[:3000]
    assert names(blocks.take(wanted)) == wanted.tolist()
    assert names(blocks.take(np.arange(MOST - 3, MOST + 3))) == list(range(MOST - 3, MOST + 3))
    monkeypatch.setattr(row_gather, "_SMALL", MOST)
    assert names(blocks.take(wanted)) == wanted.tolist()
    assert names(blocks.take(np.sort(wanted))) == sorted(wanted.tolist())


def test_entries_that_follow_each_other_are_taken_without_a_copy() -> None:
    blocks = RowBlocks()
    rows = rows_of(0, 100)
    entries = blocks.add(rows)
    assert names(blocks.take(entries[10:20])) == list(range(10, 20))
    assert blocks.take(entries[10:20]).column(0).buffers()[1].address == rows.column(0).buffers()[1].address


def test_entry_numbers_are_never_used_again() -> None:
    blocks = RowBlocks()
    blocks.release(blocks.add(rows_of(0, 3)))
    assert blocks.add(rows_of(3, 2)).tolist() == [3, 4]
    blocks.changes()
    blocks.release(np.array([3, 4]))
    assert blocks.add(rows_of(5, ENOUGH + 1))[0] == 5
    assert len(blocks) == ENOUGH + 1


def test_a_block_of_which_nothing_lives_is_dropped_whole() -> None:
    blocks = RowBlocks()
    first, second = blocks.add(rows_of(0, MOST)), blocks.add(rows_of(MOST, MOST))
    (one, _) = blocks.changes().added
    blocks.release(first)
    save = blocks.changes()
    assert save.removed == (one,) and not save.added
    assert names(blocks.take(second[5:7])) == [MOST + 5, MOST + 6]


def test_rows_that_leave_before_a_save_are_never_saved() -> None:
    blocks = RowBlocks()
    entries = [blocks.add(rows_of(number, 1)) for number in range(100)]
    blocks.release(np.concatenate(entries[:99]))
    (table,) = blocks.changes().added.values()
    assert table.column("__time").to_pylist() == [99] and table.column(ENTRY).to_pylist() == [99]


def test_memory_is_about_twice_what_lives() -> None:
    blocks, generator = RowBlocks(), np.random.default_rng(2)
    entries = np.concatenate([blocks.add(rows_of(start, 10_000)) for start in range(0, 100_000, 10_000)])
    full, count = blocks.nbytes, len(entries)
    while len(entries) > 1:
        gone = generator.permutation(len(entries))[: len(entries) // 5 + 1]
        blocks.release(entries[gone])
        entries = np.delete(entries, gone)
        assert blocks.nbytes <= full / count * (2 * len(entries) + ENOUGH) * 1.1
        assert names(blocks.take(entries[::-7])) == entries[::-7].tolist()


def test_single_rows_do_not_make_many_blocks() -> None:
    blocks = RowBlocks()
    for number in range(300):
        blocks.add(rows_of(number, 1))
        blocks.changes()
    assert len(blocks._store.runs) <= 10
    assert names(blocks.take(np.arange(299, -1, -1))) == list(range(299, -1, -1))


@pytest.mark.parametrize("size", [5000, MOST])
def test_slow_rows_left_by_many_blocks_end_up_in_few(size: int) -> None:
    blocks, left = RowBlocks(), []
    for number in range(12):
        entries = blocks.add(rows_of(number * size, size))
        left.append(int(entries[77]))
        blocks.release(np.delete(entries, 77))
    assert len(blocks._store.runs) <= 3 and len(blocks) == 12
    assert names(blocks.take(np.array(left))) == left


@pytest.mark.slow
def test_a_save_writes_what_changed() -> None:
    """A hundred thousand rows stand; each save sees a hundred come and others go."""
    blocks, generator = RowBlocks(), np.random.default_rng(3)
    entries = np.concatenate([blocks.add(rows_of(start, 20_000)) for start in range(0, 100_000, 20_000)])
    blocks.changes()
    written = 0
    for round_ in range(1000):
        which = generator.permutation(len(entries))[:100]
        blocks.release(entries[which])
        entries[which] = blocks.add(rows_of(100_000 + 100 * round_, 100))
        written += sum(table.num_rows for table in blocks.changes().added.values())
    # Each of the 100,000 rows that came is merged at most log2(MOST / 100) times, and written anew a few times.
    assert written < 100_000 * 14
    assert names(blocks.take(entries)) == entries.tolist()


def test_only_what_lives_counts_after_a_restore() -> None:
    blocks = RowBlocks()
    saves = []
    for start in (0, 6000, 12_000):
        entries = blocks.add(rows_of(start, 6000))
        blocks.release(entries[::2])
        saves.append(blocks.changes())
    blocks.release(np.arange(1, 12_000, 2))
    live = np.arange(12_001, 18_000, 2)
    saves.append(blocks.changes())
    restored = RowBlocks()
    restored.restore(whole(*saves), live[::-1].copy())
    assert len(restored) == len(blocks) == 3000
    assert names(restored.take(live[::-5])) == live[::-5].tolist()
    assert restored.add(rows_of(18_000, 1)).tolist() == [18_000]
    restored.release(live)
    assert restored.changes().removed and len(restored) == 1


def test_a_restore_drops_segments_of_which_nothing_lives() -> None:
    blocks = RowBlocks()
    blocks.add(rows_of(0, 10))
    save = blocks.changes()
    restored = RowBlocks()
    restored.restore(save, np.empty(0, np.int64))
    assert restored.changes().removed == tuple(save.added) and len(restored) == 0


def test_a_small_piece_does_not_keep_the_whole_that_it_was_cut_from() -> None:
    blocks = RowBlocks()
    blocks.add(rows_of(0, 50 * ENOUGH).slice(0, ENOUGH + 1))
    (block,) = blocks._store.runs
    assert block.rows.get_total_buffer_size() < 3 * block.rows.nbytes


def test_an_entry_is_released_once() -> None:
    blocks = RowBlocks()
    old = blocks.add(rows_of(0, ENOUGH + 1))
    new = blocks.add(rows_of(ENOUGH + 1, 5))
    for entries in (old, new):
        blocks.release(entries[:2])
        with pytest.raises(AssertionError):
            blocks.release(entries[1:3])
