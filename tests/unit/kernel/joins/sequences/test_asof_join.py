from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import RunError
from millrace.kernel.elements import ARRIVED, END_OF_TIME, TIME, Batch, Element, Punctuation
from millrace.kernel.joins.sequences import asof_store
from millrace.kernel.joins.sequences.asof_join import AsofJoin
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
    packed,
    recent,
)

BY_KEY = (("k0",), ("k1",))
RULES = [
    Rules(BY_KEY),
    Rules(BY_KEY, strict=True),
    Rules(BY_KEY, outer=True),
    Rules(BY_KEY, within=15),
    Rules(BY_KEY, within=0),
    Rules(BY_KEY, within=10, strict=True, outer=True),
    Rules(BY_KEY, by_entry=(True, False)),
    Rules(BY_KEY, within=20, strict=True, outer=True, by_entry=(True, False)),
    Rules(((), ())),
    Rules(((), ()), strict=True, outer=True, by_entry=(True, False)),
    Rules((("k0", "n0"), ("k1", "n1")), outer=True),
]


def made(rules: Rules) -> AsofJoin:
    return AsofJoin(
        schemas(), rules.keys, rules.within, strict=rules.strict, outer=rules.outer, by_entry=rules.by_entry[1]
    )


def searched(rules: Rules) -> Search:
    return lambda script: recent(script, schemas(), rules)


def bounds(elements: list[Element]) -> list[int]:
    return [each.until for each in elements if isinstance(each, Punctuation)]


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
    monkeypatch.setattr(asof_store, "ENOUGH", 2)
    monkeypatch.setattr(asof_store.AsofStore, "gather", 2)
    monkeypatch.setattr(asof_store, "_MANY", 4)
    monkeypatch.setattr(asof_store, "_PAIRS", 8)
    check_single_rows(lambda: made(rules), searched(rules))


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_keys_that_share_a_hash_are_not_taken_for_each_other(rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    check_shared_hashes(lambda: made(rules), searched(rules), monkeypatch)


def test_a_product_that_comes_before_its_case_is_not_packed_into_the_case_before() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS))
    assert packed(driven.step(1, batch("case", ("first", 10), until=10))) == []
    assert packed(driven.step(0, batch("product", ("apple", 12), until=12))) == []
    # The case that was waiting at 12 is not known before the next one is.
    assert driven.operator.wants() == ({1: 13},)
    assert packed(driven.step(0, batch("product", ("pear", 21), until=21))) == []
    assert packed(driven.step(1, batch("case", ("second", 20), until=20))) == [("apple", "first")]
    assert driven.operator.wants() == ({1: 22},)
    assert packed(driven.step(1, batch("case", ("third", 30), until=30))) == [("pear", "second")]
    assert driven.operator.wants() == ()
    assert packed(driven.step(0, batch("product", ("plum", 29), until=29))) == [("plum", "second")]
    assert packed(driven.step(0, batch("product", ("fig", 30), until=30))) == []
    assert packed(driven.step(1, Punctuation(31))) == [("fig", "third")]


def test_a_row_as_late_may_still_come_and_counts() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS))
    driven.step(1, batch("case", ("early", 5), until=10))
    driven.step(0, batch("product", ("apple", 10)))
    assert packed(driven.step(1, batch("case", ("at ten", 10), until=10))) == []
    assert packed(driven.step(1, Punctuation(11))) == [("apple", "at ten")]


def test_before_its_time_means_that_a_bound_at_its_time_is_enough() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS, strict=True))
    driven.step(1, batch("case", ("early", 5), ("at ten", 10), until=9))
    assert packed(driven.step(0, batch("product", ("apple", 10), ("pear", 9)))) == [("pear", "early")]
    assert driven.operator.wants() == ({1: 10},)
    assert packed(driven.step(1, Punctuation(10))) == [("apple", "early")]


def test_of_equal_times_the_row_that_entered_last_counts_or_the_greatest() -> None:
    cases = [batch("case", ("b", 5)), batch("case", ("c", 5), ("a", 5))]
    for by_entry, expected in ((True, "a"), (False, "c")):
        driven = Driven(lambda chosen=by_entry: AsofJoin(EXAMPLE, NO_KEYS, by_entry=chosen))
        for each in cases:
            driven.step(1, each)
            driven.restart()
        driven.step(1, Punctuation(9))
        assert packed(driven.step(0, batch("product", ("apple", 8)))) == [("apple", expected)]


def test_the_bound_is_the_lesser_of_both_and_the_end_is_the_end() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS))
    assert bounds(driven.step(0, Punctuation(50))) == []
    assert bounds(driven.step(1, Punctuation(40))) == [40]
    assert bounds(driven.step(1, Punctuation(60))) == [50]
    assert bounds(driven.step(1, Punctuation(END_OF_TIME))) == []
    assert bounds(driven.step(0, Punctuation(END_OF_TIME))) == [END_OF_TIME]


def test_after_the_end_of_the_second_input_rows_are_answered_at_once() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS))
    driven.step(1, batch("case", ("last", 5), until=END_OF_TIME))
    assert packed(driven.step(0, batch("product", ("apple", 2**62)))) == [("apple", "last")]


def test_nothing_is_held_when_nobody_will_ask_any_more() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS))
    driven.step(1, batch("case", ("first", 5), until=10))
    driven.step(0, Punctuation(END_OF_TIME))
    driven.step(1, batch("case", ("second", 15), until=20))
    assert driven.operator.held == 0


def test_a_joined_row_has_arrived_with_the_later_of_its_parts() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS, outer=True))
    driven.step(1, _arrived("case", [("first", 5, 900)]))
    driven.step(0, _arrived("product", [("apple", 7, 800), ("pear", 8, 950), ("fig", 4, 300)]))
    (given,) = [each for each in driven.step(1, Punctuation(9)) if isinstance(each, Batch)]
    arrivals = {row["product"]: row[ARRIVED] for row in given.rows.to_pylist()}
    assert arrivals == {"apple": 900, "pear": 950, "fig": 300}


def _arrived(name: str, rows: list[tuple[str, int, int]]) -> Batch:
    columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
    return Batch(pa.RecordBatch.from_arrays(columns, names=[name, TIME, ARRIVED]))


def test_more_rows_than_the_limit_are_refused_but_superseded_ones_do_not_count() -> None:
    driven = Driven(lambda: AsofJoin(EXAMPLE, NO_KEYS, state_limit=2))
    for time in range(0, 50, 10):
        driven.step(0, Punctuation(time))
        driven.step(1, batch("case", (f"case at {time}", time)))
    with pytest.raises(RunError, match="more than 2 rows") as refused:
        driven.step(1, batch("case", ("a", 60), ("b", 70)))
    assert "state_limit" in refused.value.hint
