from __future__ import annotations

import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Element, Punctuation
from millrace.kernel.progress.order import Order, TrailingRows
from millrace.kernel.progress.slack import Slack
from tests.unit.kernel.check_operator import check_operator


def rows(*times: int) -> Batch:
    return Batch(pa.record_batch({TIME: list(times)}))


def times(elements: list[Element]) -> list[int]:
    return [time for each in elements if isinstance(each, Batch) for time in each.times.tolist()]


def test_it_keeps_the_contract_of_an_operator() -> None:
    check_operator(lambda: Slack(Order(20)))
    check_operator(lambda: Slack(Order(0)))
    check_operator(lambda: Slack(TrailingRows(7)))


def test_a_row_further_behind_than_the_slack_is_turned_away() -> None:
    slack = Slack(Order(5))
    found = list(slack.on_batch(0, rows(10, 5, 4, 20, 15, 14)))
    assert times(found) == [10, 5, 20, 15]
    assert found[-1] == Punctuation(15)
    assert slack.turned_away == 2


def test_a_slack_of_rows_goes_by_the_rows_before_the_last_ones() -> None:
    slack = Slack(TrailingRows(2))
    found = list(slack.on_batch(0, rows(10, 30, 20, 12, 11, 40, 19, 29)))
    # After 10, 30, 20 the bound is 10; after 12 it is 30, because 30 is two rows back: 11, 19 and 29 are below.
    assert times(found) == [10, 30, 20, 12, 40]
    assert slack.turned_away == 3
    assert found[-1] == Punctuation(40)


def test_its_bound_comes_from_the_rows_and_not_from_their_streams() -> None:
    slack = Slack(Order(5))
    list(slack.on_batch(0, rows(10)))
    assert list(slack.on_punctuation(Punctuation(100))) == []
    assert times(list(slack.on_batch(0, rows(7)))) == [7]
    assert list(slack.on_punctuation(Punctuation(END_OF_TIME))) == [Punctuation(END_OF_TIME)]


def test_only_a_row_that_is_newer_than_all_moves_the_bound() -> None:
    slack = Slack(Order(5))
    assert list(slack.on_batch(0, rows(10)))[1:] == [Punctuation(5)]
    assert list(slack.on_batch(0, rows(9)))[1:] == []


def test_rows_turned_away_stay_counted_after_a_restart() -> None:
    slack = Slack(Order(5))
    list(slack.on_batch(0, rows(10, 1)))
    restored = Slack(Order(5))
    restored.restore(slack.changes())
    assert list(restored.on_batch(0, rows(2))) == []
    assert restored.turned_away == 2
