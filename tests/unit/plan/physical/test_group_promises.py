"""Which aggregates use the promises of single groups, and where they are rolled up instead."""

from __future__ import annotations

import pytest

from millrace.language import parse_network
from millrace.plan.explain.plan_text import explain
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import RollUp
from millrace.plan.physical.group_promises import groups_of
from millrace.plan.physical.stages import physical

MINUTE = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
READINGS = """
CREATE STREAM readings (site STRING, device STRING, value DOUBLE, ts TIMESTAMP, done BOOLEAN)
  TIMESTAMP BY ts PUNCTUATED BY done PER (site, device) FROM csv OPTIONS (path 'r.csv');
"""


def root_of(select: str) -> Node:
    """The tree of a query over readings, as it is carried out."""
    return physical(parse_network(READINGS + select)).roots[0][1]


def groups(select: str) -> tuple[str, ...]:
    """The keys by which the first aggregate uses promises of groups."""
    return groups_of(next(each for each in walk(root_of(select)) if isinstance(each, Aggregate)))


@pytest.mark.parametrize(
    "select",
    [
        f"SELECT device, site, count(*) AS n FROM readings {MINUTE} GROUP BY device, site",
        f"SELECT count(*) AS n FROM readings {MINUTE} WHERE value > 1 GROUP BY device, site, done",
        f"SELECT count(*) AS n FROM (SELECT site, device FROM readings) {MINUTE} GROUP BY site, device",
    ],
)
def test_an_aggregate_by_all_their_columns_uses_promises_of_groups(select: str) -> None:
    assert groups(select) == ("site", "device")
    assert not any(isinstance(each, RollUp) for each in walk(root_of(select)))


def test_a_key_under_another_name_still_stands_for_its_column() -> None:
    inner = "(SELECT site AS s, device AS d FROM readings)"
    assert groups(f"SELECT count(*) AS n FROM {inner} {MINUTE} GROUP BY d, s") == ("s", "d")


@pytest.mark.parametrize(
    "select",
    [
        f"SELECT device, count(*) AS n FROM readings {MINUTE} GROUP BY device",
        f"SELECT count(*) AS n FROM readings {MINUTE} GROUP BY device, upper(site)",
        "SELECT device, site, done, count(*) AS n FROM readings [SESSION 1 MINUTE] GROUP BY device, site, done",
        "SELECT device, site, count(*) AS n FROM readings [RANGE 1 MINUTE] GROUP BY device, site",
        f"SELECT count(*) AS n FROM readings UNION readings {MINUTE} GROUP BY device, site",
        "SELECT * FROM readings ORDER BY ts",
    ],
)
def test_everyone_else_gets_the_least_of_all_groups(select: str) -> None:
    assert any(isinstance(each, RollUp) for each in walk(root_of(select)))
    assert "roll up" in explain(physical(parse_network(READINGS + select)))


def test_sessions_by_all_their_columns_and_no_others_use_promises_of_groups() -> None:
    select = "SELECT device, site, count(*) AS n FROM readings [SESSION 1 MINUTE] GROUP BY device, site"
    assert groups(select) == ("site", "device")


def test_results_of_groups_are_rolled_up_for_whoever_reads_them() -> None:
    inner = f"SELECT window, site, device, count(*) AS n FROM readings {MINUTE} GROUP BY site, device"
    plan = physical(parse_network(f"{READINGS} SELECT sum(n) AS n FROM ({inner}) GROUP BY window_start, window_end"))
    (above,) = [each for each in walk(plan.roots[0][1]) if isinstance(each, RollUp)]
    assert any(isinstance(each, Aggregate) and groups_of(each) for each in walk(above))
    # Promises do not cross to the next level: they are rolled up before.
    (crossing,) = plan.crossings()
    assert any(isinstance(each, RollUp) for each in walk(crossing.input))


def test_a_query_without_state_needs_no_bound() -> None:
    assert not any(isinstance(each, RollUp) for each in walk(root_of("SELECT device FROM readings")))
