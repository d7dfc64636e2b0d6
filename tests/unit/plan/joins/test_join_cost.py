"""The closed forms of in-order joins (003 equations 1 to 8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millrace.plan.joins.join_cost import JoinCost, assured_improvement, switching_product

FIG_7 = JoinCost.of(pair=5e-4, window=60, rates=(1, 10))
FIG_6 = JoinCost.of(pair=1e-4, window=86_400, rates=(0.1, 1))


def response_times(cost: JoinCost, *, put_off: bool) -> list[float]:
    """The response times of the n fast rows between two slow ones, row by row as 003 lists them."""
    return [
        1 / cost.slow - before / cost.fast + (before + 1) * cost.probe_slow * put_off
        for before in range(round(cost.between))
    ]


@pytest.mark.parametrize("cost", [FIG_7, FIG_6, JoinCost.of(1e-3, 7, (3, 12))])
def test_totals_and_means_are_those_of_the_rows_one_by_one(cost: JoinCost) -> None:
    sync, ordered = response_times(cost, put_off=True), response_times(cost, put_off=False)
    assert cost.between * cost.sync_filter == pytest.approx(sum(sync))
    assert cost.between * cost.filter_order == pytest.approx(sum(ordered))


@pytest.mark.parametrize("cost", [FIG_7, FIG_6, JoinCost.of(1e-3, 7, (3, 12))])
def test_the_improvement_is_that_of_the_means(cost: JoinCost) -> None:
    assert cost.improvement == pytest.approx(1 - cost.filter_order / cost.sync_filter)


def test_the_paper_s_numbers() -> None:
    assert FIG_7.filter_order == pytest.approx(0.55)
    assert FIG_7.sync_filter == pytest.approx(0.715)
    assert FIG_6.sync_filter == pytest.approx(10.25, abs=0.01)
    assert FIG_6.filter_order == pytest.approx(5.5)
    assert assured_improvement(0.3) == pytest.approx(0.23, abs=0.01)


def test_at_the_limit_of_equation_1_the_improvement_is_greatest() -> None:
    limit = replace(FIG_7, pair=1 / (60 * 1 * 10))
    assert not limit.keeps_up and replace(limit, pair=limit.pair * 0.999).keeps_up
    assert limit.improvement == pytest.approx(0.5)


def test_equation_1_says_that_each_stream_s_probes_fit_between_its_rows() -> None:
    for pair in (0.9 / 600, 1.1 / 600):
        cost = replace(FIG_7, pair=pair)
        assert (
            cost.keeps_up == (cost.probe_slow < 1 / cost.fast) == (cost.pair * cost.window * cost.fast < 1 / cost.slow)
        )


def test_one_processor_carries_the_probes_of_both_streams() -> None:
    assert FIG_7.load == pytest.approx(
        FIG_7.fast * FIG_7.probe_slow + FIG_7.slow * FIG_7.pair * FIG_7.window * FIG_7.fast
    )


def test_the_order_of_the_rates_does_not_matter() -> None:
    assert JoinCost.of(1e-3, 5, (2, 9)) == JoinCost.of(1e-3, 5, (9, 2))


def test_with_rows_at_random_a_fast_row_waits_for_the_next_slow_one() -> None:
    assert FIG_7.filter_order_poisson == 1.0
    assert FIG_7.sync_filter_poisson - FIG_7.filter_order_poisson == pytest.approx(
        2 * (FIG_7.sync_filter - FIG_7.filter_order)
    )


def test_the_adaptive_join_switches_where_the_rates_reach_the_product() -> None:
    product = switching_product(5e-4, 60, 0.3)
    for factor, method in ((0.99, "sync_filter"), (1.01, "filter_order")):
        assert JoinCost.of(5e-4, 60, (1, product * factor)).adaptive(0.3) == method
