from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.elements import ARRIVED, END_OF_TIME, NO_BOUND, TIME, Batch, Element, Punctuation
from millrace.kernel.relational.number import Number
from tests.unit.kernel.check_operator import Script, check_operator, outputs, random_script


def batch(name: str, *times: int) -> Batch:
    names = [f"{name}{place}" for place in range(len(times))]
    return Batch(pa.record_batch({"k": names, TIME: list(times), ARRIVED: [9] * len(times)}))


def numbers(elements: list[Element]) -> list[tuple[str, int]]:
    return [(row["k"], row[TIME]) for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]


@pytest.mark.parametrize("ports", [1, 3])
def test_numbering_keeps_the_contract(ports: int) -> None:
    check_operator(Number, ports=ports)


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_numbered_by_time_then_input_then_order_in_the_input(seed: int) -> None:
    script = random_script(seed, ports=3)
    arrived = [
        (row[TIME], port, place, row["k"], row["n"])
        for place, (port, element) in enumerate(script.steps)
        if isinstance(element, Batch)
        for row in element.rows.to_pylist()
    ]
    expected = [(*each[3:], number) for number, each in enumerate(sorted(arrived, key=lambda each: each[:3]))]
    found = [
        (row["k"], row["n"], row[TIME])
        for each in outputs(Number(), script)
        if isinstance(each, Batch)
        for row in each.rows.to_pylist()
    ]
    assert found == expected


def test_a_row_at_the_bound_has_no_number_yet() -> None:
    operator = Number()
    list(operator.on_batch(1, batch("b", 5, -3)))
    assert operator.wanted() == -2
    assert outputs(operator, Script(((0, Punctuation(-3)),))) == [Punctuation(0)]
    list(operator.on_batch(0, batch("a", -3)))
    found = outputs(operator, Script(((0, Punctuation(5)),)))
    assert numbers(found) == [("a0", 0), ("b1", 1)]
    assert found[-1] == Punctuation(2)
    assert operator.held == 1
    found = outputs(operator, Script(((0, Punctuation(END_OF_TIME)),)))
    assert numbers(found) == [("b0", 2)]
    assert found[-1] == Punctuation(END_OF_TIME)


def test_reserved_columns_stay_and_the_time_is_the_number() -> None:
    operator = Number()
    list(operator.on_batch(0, batch("a", 70)))
    numbered, _ = operator.on_punctuation(Punctuation(71))
    assert isinstance(numbered, Batch)
    assert numbered.rows.to_pylist() == [{"k": "a0", TIME: 0, ARRIVED: 9}]


def test_a_number_requires_the_bound_that_releases_its_row() -> None:
    operator = Number()
    list(operator.on_batch(0, batch("a", 10, 30, 20)))
    assert operator.required(0) == NO_BOUND
    assert [operator.required(count) for count in (1, 2, 3, 4)] == [11, 21, 31, END_OF_TIME]
    list(operator.on_punctuation(Punctuation(15)))
    assert [operator.required(count) for count in (1, 2, 3)] == [NO_BOUND, 21, 31]
    assert operator.required(END_OF_TIME) == END_OF_TIME
