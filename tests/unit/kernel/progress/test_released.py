from __future__ import annotations

import pyarrow as pa

from millrace.kernel.elements import NO_BOUND, TIME, Batch, Cause
from millrace.kernel.progress.released import COLUMNS, Released, by_release, with_release


def rows(*times: int) -> Batch:
    return Batch(pa.record_batch({"k": pa.array(range(len(times))), TIME: pa.array(times, pa.int64())}))


def told(operator: Released, batch: Batch) -> list[dict[str, object]]:
    (given,) = operator.on_batch(0, batch)
    assert isinstance(given, Batch)
    assert given.rows.schema.names == ["k", *COLUMNS, TIME], "reserved columns stand last"
    return given.rows.select(list(COLUMNS)).to_pylist()


def test_rows_have_what_let_them_leave() -> None:
    operator = Released(by_number=True)
    operator.on_release(Cause("a", "ets", 5), 1_000_000)
    assert {tuple(map(str, row.values())) for row in told(operator, rows(1, 2))} == {
        ("a", "ets", "5", "1970-01-01 00:00:01+00:00")
    }
    operator.on_release(None, 2_000_000)
    assert [row["released_by"] for row in told(operator, rows(3))] == [None]


def test_rows_that_leave_together_are_remembered_as_one_release_and_few_of_them() -> None:
    operator = Released()
    operator.on_release(Cause("a", "data", NO_BOUND), 1)
    for _ in range(3):
        told(operator, rows(1, 2))
    assert [(each.rows, each.at) for each in operator.recent] == [(6, 1)]
    for now in range(100):
        operator.on_release(Cause("a", "data", now), now)
        told(operator, rows(1))
    assert len(operator.recent) == 20 and operator.recent[-1].at == 99


def test_rows_carry_their_release_to_another_graph() -> None:
    first, second = Cause("a", "data", 5), Cause("b", "ets", 7)
    carried = pa.concat_batches([with_release(rows(1, 2), first).rows, with_release(rows(3), second).rows])
    found = {release: batch.column(TIME).to_pylist() for batch, release in by_release(carried)}
    assert found == {first: [1, 2], second: [3]}
    assert all(batch.schema.names == ["k", TIME] for batch, _ in by_release(carried))
    plain = rows(1).rows
    assert [(batch.num_rows, release) for batch, release in by_release(plain)] == [(1, None)]
