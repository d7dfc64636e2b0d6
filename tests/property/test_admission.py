"""What becomes of a row at the edge of its stream, for every order contract, however the rows are cut and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.columns.expressions import Column, Expression
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.time_contract import TimeContract
from tests.reference import admitted

pytestmark = pytest.mark.slow

Row = dict[str, Any]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("until", pa.timestamp("us", tz="UTC")),
        ("mark", pa.bool_()),
        ("k", pa.string()),
        ("j", pa.int32()),
        ("began", pa.timestamp("us", tz="UTC")),
    ]
)


@st.composite
def contracts(draw: st.DrawFn) -> TimeContract:
    """Every order contract, in one partition or several, guarded or not."""
    order = draw(st.sampled_from(["disorder", "rows", "promised", "marked"]))
    promise: Expression | None = {"promised": Column("until"), "marked": Column("mark")}.get(order)
    return TimeContract(
        "external",
        "ts",
        draw(st.sampled_from([0, 3, 20])) if order == "disorder" else 0,
        rows=draw(st.integers(0, 5)) if order == "rows" else None,
        punctuation=promise,
        partitions=() if order == "rows" else draw(st.sampled_from([(), ("k",), ("k", "j")])),
        max_future_skew=draw(st.sampled_from([None, None, 0, 10, 40])),
    )


@st.composite
def further_contracts(draw: st.DrawFn) -> TimeContract:
    """Promises for single groups, and further columns that progress."""
    contract = draw(contracts())
    also = draw(st.sampled_from([(), (("began", 0),), (("began", 10),), (("began", 3), ("until", 8))]))
    if contract.punctuation is not None and draw(st.booleans()):
        return replace(contract, partitions=(), per=draw(st.sampled_from([("k",), ("k", "j")])), also=also)
    return replace(contract, also=also)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Rows that drift ahead, trail, jump and break their promises."""
    found, time = [], 0
    for number in range(draw(st.integers(0, 30))):
        time += draw(st.sampled_from([0, 1, 2, 5, 50]))
        ts = draw(st.one_of(st.none(), st.integers(time - 30, time + 5), st.just(time), st.just(time + 1_000)))
        until = draw(st.one_of(st.none(), st.integers(time - 20, time + 20), st.just(time + 1_000)))
        mark, key = draw(st.sampled_from([True, False, None])), draw(st.sampled_from(["a", "b", "c", None]))
        began = draw(st.one_of(st.none(), st.integers(time - 12, time), st.just(time - 1)))
        row = {"id": number, "ts": ts, "until": until, "mark": mark, "k": key, "j": draw(st.integers(0, 1))}
        found.append({**row, "began": began})
    return found


@st.composite
def pieces(draw: st.DrawFn, rows: Sequence[Row]) -> list[list[Row]]:
    """The rows in order, cut anywhere, with an empty piece now and then."""
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    return [list(rows[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


@given(data=st.data(), contract=st.one_of(contracts(), further_contracts()), given_rows=rows())
def test_every_row_meets_the_fate_that_the_rows_before_it_give_it(
    data: st.DataObject, contract: TimeContract, given_rows: list[Row]
) -> None:
    verdicts = admitted(contract, given_rows, SCHEMA)
    ingress = Ingress(contract)
    for piece in data.draw(pieces(given_rows)):
        before = (ingress.late, ingress.quarantined, ingress.bound)
        admission = ingress.admit(batch(piece), now=0)
        expected = verdicts[piece[0]["id"] : piece[-1]["id"] + 1] if piece else []
        own = [verdict for verdict, _ in expected]
        ids = [row["id"] for row, verdict in zip(piece, own, strict=True) if verdict == "admitted"]
        assert admission.admitted.rows.column("id").to_pylist() == ids
        assert len(admission.late) == ingress.late - before[0] == own.count("late")
        assert ingress.quarantined - before[1] == own.count("quarantined")
        assert ingress.bound == (_bound(expected[-1][1]) if expected else before[2])
        check_bounds(
            [int(bound) for bound in admission.bounds], ids, [_bound(bound) for _, bound in verdicts], ingress.bound
        )
        if data.draw(st.booleans()):
            ingress = restored(ingress)
    assert ingress.received == len(given_rows)


def check_bounds(bounds: list[int], ids: list[int], expected: list[int], last: int) -> None:
    """A row's bound is the one after it, or one that rows after it set which are not let in."""
    assert len(bounds) == len(ids)
    for bound, row, following in zip(bounds, ids, [*ids[1:], len(expected)], strict=False):
        assert bound in expected[row:following]
    assert not bounds or bounds[-1] == last


def _bound(bound: int | None) -> int:
    return NO_BOUND if bound is None else bound


def restored(ingress: Ingress) -> Ingress:
    again = Ingress(ingress.contract)
    again.restore(json.loads(json.dumps(ingress.save())))
    return again


@given(data=st.data(), contract=contracts(), given_rows=rows())
def test_files_read_side_by_side_never_claim_more_than_files_read_in_sequence(
    data: st.DataObject, contract: TimeContract, given_rows: list[Row]
) -> None:
    sequential, high = Ingress(contract), Ingress(contract)
    for together in data.draw(pieces(given_rows)):
        known, progresses = high.progress(), []
        files = data.draw(pieces(together))
        for piece in files:
            low = Ingress(contract)
            low.frozen = bool(contract.partitions) and len(files) > 1
            low.resume(json.loads(json.dumps(known)))
            low.admit(batch(piece), now=0)
            progresses.append(low.progress())
        high.follow(progresses)
        if contract.max_future_skew is None:
            sequential.admit(batch(together), now=0)
            assert high.bound <= sequential.bound
            assert high.greatest == sequential.greatest
        assert high.bound >= known["bound"]
        if len(progresses) == 1:
            assert high.progress() == progresses[0]
