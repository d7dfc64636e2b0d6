from __future__ import annotations

import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Element, Punctuation
from millrace.kernel.progress.slack import Slack
from tests.unit.kernel.check_operator import check_operator


def rows(*times: int) -> Batch:
    return Batch(pa.record_batch({TIME: list(times)}))


def times(elements: list[Element]) -> list[int]:
    return [time for each in elements if isinstance(each, Batch) for time in each.times.tolist()]


def test_it_keeps_the_contract_of_an_operator() -> None:
    check_operator(lambda: Slack(20))
    check_operator(lambda: Slack(0))


def test_a_row_further_behind_than_the_slack_is_turned_away() -> None:
    slack = Slack(5)
    found = list(slack.on_batch(0, rows(10, 5, 4, 20, 15, 14)))
    assert times(found) == [10, 5, 20, 15]
    assert found[-1] == Punctuation(15)
    assert slack.turned_away == 2


def test_its_bound_comes_from_the_rows_and_not_from_their_streams() -> None:
    slack = Slack(5)
    list(slack.on_batch(0, rows(10)))
    assert list(slack.on_punctuation(Punctuation(100))) == []
    assert times(list(slack.on_batch(0, rows(7)))) == [7]
    assert list(slack.on_punctuation(Punctuation(END_OF_TIME))) == [Punctuation(END_OF_TIME)]


def test_only_a_row_that_is_newer_than_all_moves_the_bound() -> None:
    slack = Slack(5)
    assert list(slack.on_batch(0, rows(10)))[1:] == [Punctuation(5)]
    assert list(slack.on_batch(0, rows(9)))[1:] == []


def test_rows_turned_away_stay_counted_after_a_restart() -> None:
    slack = Slack(5)
    list(slack.on_batch(0, rows(10, 1)))
    restored = Slack(5)
    restored.restore(slack.changes())
    assert list(restored.on_batch(0, rows(2))) == []
    assert restored.turned_away == 2
