"""The window join that the figures of 003 are made with."""

from __future__ import annotations

import numpy as np
import pytest

from millrace.experiments.figures.ordered_joins import ADAPTIVE, FILTER, SYNC, WINDOW, JoinCase, even, network, poisson
from millrace.kernel.joins.in_order.ordered_join import OrderedJoin
from millrace.language import parse_network
from millrace.plan.joins.join_cost import JoinCost
from millrace.plan.physical.stages import physical


def test_a_fast_row_names_the_slow_row_before_it() -> None:
    arrivals = poisson(2, 10, 30, seed=1)
    (fast,) = arrivals.feeds()["fast"]
    partners = fast.column("partner").to_numpy()
    named = partners >= 0
    assert named.sum() > 200
    assert (arrivals.slow[partners[named]] <= arrivals.fast[named]).all()
    following = np.append(arrivals.slow, np.iinfo(np.int64).max)[partners + 1]
    assert (arrivals.fast < following).all()


def test_evenly_spaced_fast_rows_begin_right_after_a_slow_one() -> None:
    arrivals = even(0.5, 2, 10)
    assert np.diff(arrivals.slow).tolist() == [2_000_000] * 4
    assert (arrivals.fast[::4] - arrivals.slow).tolist() == [1] * 5


def test_a_fast_row_has_as_many_results_as_are_asked_for() -> None:
    many, few = (JoinCase(FILTER, 0.0, 1, 2, 2 * WINDOW, matches=matches).measure() for matches in (5.0, 0.1))
    assert (many["results"], few["results"]) == (5 * 118, 12)
    assert many["peak"] > few["peak"] >= 3 * WINDOW


@pytest.mark.parametrize("method", [SYNC, FILTER, ADAPTIVE])
def test_the_query_is_one_ordered_join(method: str) -> None:
    operators = [node.operator for node in physical(parse_network(network(method))).whole().operators()]
    assert sum(isinstance(each, OrderedJoin) for each in operators) == 1


@pytest.mark.parametrize(("method", "response"), [(SYNC, "sync_filter"), (FILTER, "filter_order")])
def test_a_run_takes_what_the_equations_say(method: str, response: str) -> None:
    cost = JoinCost(0.002, WINDOW, 0.5, 2)
    found = JoinCase(method, cost.pair, cost.slow, cost.fast, WINDOW + 20).measure()
    assert found["results"] == 36
    assert found["response"] == pytest.approx(getattr(cost, response), rel=0.02)
