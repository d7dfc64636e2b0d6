"""Any join that can be planned gives what nested loops give, in one process and across levels and buckets."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.plan.nodes.relational_nodes import OrderByTime
from tests.property.cases import Row
from tests.property.join_plans import KINDS, PlanCase, plan_cases
from tests.property.test_levels import run
from tests.property.test_windows import driven
from tests.reference import evaluate, same

pytestmark = pytest.mark.slow

every_kind = pytest.mark.parametrize("kind", KINDS)


def check(case: PlanCase, found: list[Row]) -> None:
    (query,) = case.network.queries
    expected = evaluate(query, case.rows)
    assert same(found, expected), f"{query.root}\nfound    {found}\nexpected {expected}"
    if isinstance(query.root, OrderByTime):
        times = [max(row[name] for name in ("x.ts", "y.ts", "z.ts") if row.get(name) is not None) for row in found]
        assert times == sorted(times)


@every_kind
@given(data=st.data(), rows_per_step=st.sampled_from([None, 1, 3]))
def test_batching_and_restarts_do_not_change_what_a_plan_joins(
    kind: str, data: st.DataObject, rows_per_step: int | None
) -> None:
    case = data.draw(plan_cases(kind))
    check(case, driven(data, case, rows_per_step))  # type: ignore[arg-type]


@every_kind
@given(data=st.data())
def test_levels_buckets_and_replays_do_not_change_what_a_plan_joins(kind: str, data: st.DataObject) -> None:
    case = data.draw(plan_cases(kind))
    with tempfile.TemporaryDirectory() as folder:
        levels = run(data, case, Path(folder))  # type: ignore[arg-type]
    check(case, levels.results)
