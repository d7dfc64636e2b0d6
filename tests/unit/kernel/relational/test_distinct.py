from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.elements import TIME, Batch, Element, Punctuation
from millrace.kernel.relational import distinct
from millrace.kernel.relational.distinct import Distinct
from tests.unit.kernel.check_operator import Script, check_operator, outputs, random_script

Row = tuple[str | None, int | None, int]


def values(element: Element) -> list[Row]:
    return [(row["k"], row["n"], row[TIME]) for row in element.rows.to_pylist()] if isinstance(element, Batch) else []


def check_against_reference(script: Script) -> None:
    operator, seen = Distinct(("k", "n")), set[Row]()
    for port, element in script.steps:
        found = [row for each in outputs(operator, Script(((port, element),))) for row in values(each)]
        expected = [row for row in dict.fromkeys(values(element)) if row not in seen]
        seen.update(expected)
        assert found == expected


def test_duplicate_elimination_keeps_the_contract() -> None:
    check_operator(lambda: Distinct(("k", "n")), ports=2)


@pytest.mark.parametrize("seed", range(6))
def test_the_first_of_equal_rows_passes_at_once(seed: int) -> None:
    check_against_reference(random_script(seed, ports=1, batches=40))


def test_rows_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "hashes_of", lambda rows, keys: np.zeros(rows.num_rows, np.int64))
    check_against_reference(random_script(7, ports=1, batches=30))


def test_what_is_before_the_bound_is_forgotten() -> None:
    operator = Distinct(("k",))
    rows = Batch(pa.record_batch({"k": ["a", "a", None, None], TIME: [-2, -2, 4, 4]}))
    (passed,) = operator.on_batch(0, rows)
    assert isinstance(passed, Batch) and len(passed) == 2
    assert list(operator.on_batch(0, rows)) == []
    assert operator.held == 2
    assert list(operator.on_punctuation(Punctuation(4))) == [Punctuation(4)]
    assert operator.held == 1
    assert list(operator.on_batch(0, rows.slice(2, 2))) == []


def test_a_row_is_compared_only_with_rows_of_its_time_and_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Distinct(("n",))
    list(operator.on_batch(0, Batch(pa.record_batch({"n": list(range(10_000)), TIME: [5] * 10_000}))))
    compared: list[int] = []
    codes_of = distinct.codes_of
    monkeypatch.setattr(distinct, "codes_of", lambda columns, count: compared.append(count) or codes_of(columns, count))
    list(operator.on_batch(0, Batch(pa.record_batch({"n": [7, 20_000], TIME: [5, 5]}))))
    assert compared == [3]
