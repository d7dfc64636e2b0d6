from __future__ import annotations

import pytest

from millrace.experiments.figures.joint_punctuation import (
    FOLDED,
    FOLDED_LATE,
    INDIVIDUAL,
    JOINT,
    JOINT_LATE,
    LATE,
    PairCase,
    pair_case,
)
from millrace.language import parse_network
from millrace.plan.nodes.aggregate_nodes import Aggregate, PairWindow
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import walk

FORMS = {JOINT: 0.0, INDIVIDUAL: 4.0, FOLDED: 0.0, JOINT_LATE: 0.0}


def case(name: str) -> PairCase:
    return pair_case(name, 4.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_complete_group_waits_as_long_as_the_promise_takes(name: str) -> None:
    assert case(name).measure()["wait"] == FORMS[name]


def test_if_one_stream_is_late_a_promise_about_one_time_takes_longer() -> None:
    late = case(FOLDED_LATE).measure()
    assert 0 < late["wait"] <= 4.0 * LATE
    assert late["answers"] == case(JOINT).measure()["answers"]


@pytest.mark.parametrize(
    ("name", "pairs", "folded"), [(JOINT, True, False), (INDIVIDUAL, False, False), (FOLDED, False, True)]
)
def test_a_form_has_the_plan_that_it_is_named_after(name: str, pairs: bool, folded: bool) -> None:
    (query,) = parse_network(case(name).text).queries
    nodes = list(walk(query.root))
    (aggregate,) = (node for node in nodes if isinstance(node, Aggregate))
    (join,) = (node for node in nodes if isinstance(node, Join))
    assert isinstance(aggregate.window, PairWindow) is pairs is join.joint
    assert (join.residual is None) is folded
