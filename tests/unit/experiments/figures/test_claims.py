"""Claims: a value, a range, and words for both."""

from __future__ import annotations

import pytest

from millrace.experiments.figures.claims import Claim, about, furthest, value_text


@pytest.mark.parametrize(("measured", "holds"), [(1.9, False), (2.0, True), (3.0, True), (3.1, False)])
def test_a_claim_holds_from_its_low_to_its_high_end(measured: float, holds: bool) -> None:
    assert Claim("x", measured, 2.0, 3.0).holds is holds


def test_a_claim_about_a_value_states_its_tolerance() -> None:
    claim = about("the mean", 19.0, 20.0, 0.1, "s")
    assert str(claim) == "the mean, within 10 %: 19 s (must be 18 s to 22 s)"


def test_a_claim_that_is_not_a_number_does_not_hold() -> None:
    assert not Claim("x", float("nan"), 0.0).holds


@pytest.mark.parametrize(
    ("measured", "reproduces", "expected", "verdict"),
    [
        (3.0, True, True, "holds"),
        (1.0, True, False, "FAILS"),
        (1.0, False, True, "differs"),
        (3.0, False, False, "HOLDS, though known not to"),
    ],
)
def test_a_claim_that_is_known_not_to_reproduce_is_told_and_expected(
    measured: float, reproduces: bool, expected: bool, verdict: str
) -> None:
    claim = Claim("x", measured, low=2.0, reproduces=reproduces)
    assert (claim.as_expected, claim.verdict) == (expected, verdict)
    assert ("known not to reproduce" in str(claim)) is not reproduces


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (Claim("x", 1, low=5), "at least 5"),
        (Claim("x", 1, high=0.001, unit="%"), "at most 0.1 %"),
        (Claim("x", 1, 1, 1), "1"),
    ],
)
def test_a_range_with_one_end_says_so(claim: Claim, words: str) -> None:
    assert claim.range_text() == words


def test_the_furthest_ratio_is_found_below_and_above_one() -> None:
    assert furthest([1.1, 0.5, 1.2]) == 0.5
    assert furthest([0.9, 3.0, 1.0]) == 3.0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (21.04, "s", "21 s"),
        (0.0021, "s", "2.1 ms"),
        (0.00011, "s", "0.11 ms"),
        (0.0000031, "s", "3.1 µs"),
        (0.0, "s", "0 µs"),
        (0.2, "%", "20 %"),
        (0.99991, "%", "99.99 %"),
        (4912.0, "", "4,912"),
        (1.1437, "", "1.14"),
    ],
)
def test_values_read_well(value: float, unit: str, text: str) -> None:
    assert value_text(value, unit) == text
