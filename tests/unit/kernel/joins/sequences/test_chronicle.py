from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import RunError
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Punctuation
from millrace.kernel.joins.sequences import fifo_runs, keyed_fifo
from millrace.kernel.joins.sequences.chronicle import Chronicle
from tests.unit.kernel.check_by_input import (
    Driven,
    check_by_input,
    schemas,
)
from tests.unit.kernel.sequences import (
    EXAMPLE,
    NO_KEYS,
    Rules,
    Search,
    batch,
    check_shared_hashes,
    check_single_rows,
    check_whole_batches,
    chronicle,
    packed,
)

BY_KEY = (("k0",), ("k1",))
RULES = [
    Rules(BY_KEY),
    Rules(BY_KEY, outer=True),
    Rules(BY_KEY, within=15),
    Rules(BY_KEY, within=0, outer=True),
    Rules(BY_KEY, by_entry=(False, True)),
    Rules(BY_KEY, by_entry=(True, False), outer=True),
    Rules(BY_KEY, within=20, by_entry=(False, False)),
    Rules(((), ())),
    Rules(((), ()), within=12, outer=True, by_entry=(False, False)),
    Rules((("k0", "n0"), ("k1", "n1")), within=40, outer=True),
]


def made(rules: Rules) -> Chronicle:
    return Chronicle(schemas(), rules.keys, rules.within, outer=rules.outer, by_entry=rules.by_entry)


def searched(rules: Rules) -> Search:
    return lambda script: chronicle(script, schemas(), rules)


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_keeps_the_promises_of_an_operator(rules: Rules) -> None:
    check_by_input(lambda: made(rules), seeds=2)


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_gives_the_rows_that_a_search_row_by_row_gives(rules: Rules) -> None:
    check_whole_batches(lambda: made(rules), searched(rules))


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_gives_the_same_rows_however_few_are_gathered(rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_fifo, "ENOUGH", 1)
    monkeypatch.setattr(fifo_runs, "ENOUGH", 1)
    monkeypatch.setattr(keyed_fifo.KeyedFifo, "gather", 2)
    check_single_rows(lambda: made(rules), searched(rules))


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_keys_that_share_a_hash_are_not_taken_for_each_other(rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    check_shared_hashes(lambda: made(rules), searched(rules), monkeypatch)


def test_each_product_gets_the_earliest_case_that_is_left() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS))
    driven.step(1, batch("case", ("first", 10), ("second", 11), ("third", 20), until=20))
    assert packed(driven.step(0, batch("product", ("apple", 12), until=12))) == [("apple", "first")]
    assert packed(driven.step(0, batch("product", ("pear", 15), until=15))) == [("pear", "second")]
    # No case is left that came before it: a later one is not for it.
    assert packed(driven.step(0, batch("product", ("plum", 19), until=19))) == []
    assert driven.operator.held == 1
    assert packed(driven.step(0, batch("product", ("fig", 21), until=21))) == []
    assert driven.operator.wants() == ({0: 21, 1: 22},)
    assert packed(driven.step(1, Punctuation(22))) == [("fig", "third")]
    assert driven.operator.held == 0


def test_a_product_that_comes_before_its_case_is_not_packed_into_a_later_one() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS, outer=True))
    assert packed(driven.step(0, batch("product", ("apple", 12), until=12))) == []
    assert packed(driven.step(1, batch("case", ("late", 13), until=12))) == []
    assert packed(driven.step(1, batch("case", ("own", 12), until=12))) == []
    assert packed(driven.step(1, Punctuation(13))) == [("apple", "own")]
    assert packed(driven.step(0, batch("product", ("pear", 12), until=13))) == [("pear", None)]


def test_rows_are_served_by_time_and_not_as_they_come() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS))
    driven.step(1, batch("case", ("second", 2), ("first", 1), until=100))
    assert packed(driven.step(0, batch("product", ("later", 50), ("sooner", 40)))) == []
    assert packed(driven.step(0, Punctuation(60))) == [("sooner", "first"), ("later", "second")]


def test_without_an_order_of_entry_rows_of_equal_time_wait_for_each_other() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS, by_entry=(False, False)))
    driven.step(1, batch("case", ("b", 1), ("a", 1), until=100))
    assert packed(driven.step(0, batch("product", ("pear", 50), until=50))) == []
    assert driven.operator.wants() == ({0: 51, 1: 51},)
    assert packed(driven.step(0, batch("product", ("apple", 50), until=51))) == [("apple", "a"), ("pear", "b")]


def test_a_case_that_is_too_old_is_passed_over_and_let_go() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS, within=10))
    driven.step(1, batch("case", ("old", 0), ("good", 5), ("next", 6), until=100))
    assert packed(driven.step(0, batch("product", ("apple", 15), until=15))) == [("apple", "good")]
    assert driven.operator.held == 1
    driven.step(0, Punctuation(17))
    assert driven.operator.held == 0


def test_more_rows_than_the_limit_are_refused_by_the_name_of_the_option() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS, state_limit=3))
    driven.step(1, batch("case", ("a", 1), ("b", 2)))
    driven.step(0, batch("product", ("apple", 3)))
    with pytest.raises(RunError, match="more than 3 rows") as refused:
        driven.step(1, batch("case", ("c", 3)))
    assert "state_limit" in refused.value.hint


def test_rows_that_are_too_old_do_not_count_towards_the_limit() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS, within=10, state_limit=2))
    driven.step(1, batch("case", ("a", 1), ("b", 2)))
    driven.step(0, Punctuation(50))
    driven.step(1, batch("case", ("c", 45), ("d", 46)))
    assert driven.operator.held == 2


def test_nothing_is_held_when_nobody_will_come_any_more() -> None:
    driven = Driven(lambda: Chronicle(EXAMPLE, NO_KEYS))
    driven.step(1, batch("case", ("first", 5), until=10))
    driven.step(0, Punctuation(END_OF_TIME))
    driven.step(1, batch("case", ("second", 15), until=20))
    assert driven.operator.held == 0


def test_a_save_writes_the_numbers_of_used_rows_and_not_the_queue() -> None:
    count = 20_000
    operator = Chronicle(EXAMPLE, NO_KEYS)
    cases = [pa.array([f"case {number}" for number in range(count)]), pa.array(np.arange(count))]
    list(operator.on_batch(1, Batch(pa.RecordBatch.from_arrays(cases, names=["case", TIME]))))
    list(operator.on_bound(1, Punctuation(2 * count)))
    operator.changes()
    list(operator.on_batch(0, batch("product", ("apple", count), ("pear", count), until=None)))
    list(operator.on_bound(0, Punctuation(count)))
    saved = operator.changes()
    assert sum(table.num_rows for table in saved.added.values()) == 2
    assert saved.removed == ()
