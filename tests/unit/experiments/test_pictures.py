"""Pictures: well-formed text, and every point where its scale puts it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from millrace.experiments.pictures import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Axis, Picture, round_numbers

SVG = "{http://www.w3.org/2000/svg}"


def picture() -> Picture:
    return Picture("delays <of> \"both\" & 'more'", Axis("x & y", 0, 10), Axis("delay < 5", 0, 100))


def drawn(made: Picture, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(made.svg()).iter(SVG + tag))


def test_a_picture_is_well_formed_whatever_its_words_hold() -> None:
    made = picture()
    made.band(1, 2, "a < b & c")
    made.name("<one> & other", "#000000")
    texts = [each.text for each in drawn(made, "text")]
    assert "a < b & c" in texts and "<one> & other" in texts and "delay < 5" in texts


def test_an_axis_maps_the_ends_of_its_range_to_0_and_1() -> None:
    axis = Axis("x", 10, 20)
    assert (axis.share(10), axis.share(15), axis.share(20)) == (0, 0.5, 1)


def test_an_axis_of_one_value_does_not_divide_by_zero() -> None:
    assert Axis("x", 5, 5).share(5) == 0


def test_y_grows_upwards_and_x_to_the_right() -> None:
    made = picture()
    made.dots([(0, 0), (10, 100)], "#123456")
    low, high = ([float(each.attrib[name]) for name in ("cx", "cy")] for each in drawn(made, "circle"))
    assert low == [LEFT, BOTTOM]
    assert high == [RIGHT, TOP]


def test_a_line_passes_through_all_its_points() -> None:
    made = picture()
    made.line([(0, 0), (5, 50), (10, 100)], "#123456", dashed=True)
    (line,) = drawn(made, "polyline")
    assert len(line.attrib["points"].split()) == 3 and "stroke-dasharray" in line.attrib


def test_hollow_dots_differ_from_full_ones() -> None:
    made = picture()
    made.dots([(1, 1)], "#123456")
    made.dots([(2, 2)], "#123456", hollow=True)
    assert [each.attrib["fill"] for each in drawn(made, "circle")] == ["#123456", "white"]


def test_a_band_covers_its_stretch_over_the_whole_height() -> None:
    made = picture()
    made.band(2, 4, "silent")
    band = drawn(made, "rect")[1]
    assert float(band.attrib["width"]) == pytest.approx((RIGHT - LEFT) / 5, abs=0.1)
    assert int(band.attrib["height"]) == BOTTOM - TOP


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 62), (-3, 3), (0.001, 0.0042), (1e6, 9e6), (7, 7)])
def test_ticks_are_few_round_and_within_the_range(low: float, high: float) -> None:
    found = round_numbers(low, high)
    assert 1 <= len(found) <= 9
    assert found == sorted(set(found)) and low - 1e-9 <= found[0] and found[-1] <= high + 1e-9


def test_the_same_data_gives_the_same_picture() -> None:
    assert picture().svg() == picture().svg()


def test_a_logarithmic_axis_gives_every_decade_the_same_room() -> None:
    axis = Axis("rate", 0.1, 1000, log=True)
    assert [round(axis.share(value), 6) for value in (0.1, 1, 10, 100, 1000)] == [0, 0.25, 0.5, 0.75, 1]


def test_a_logarithmic_axis_draws_what_is_below_it_at_its_low_end() -> None:
    assert Axis("rate", 0.1, 1000, log=True).share(0) == 0


@pytest.mark.parametrize(("low", "high"), [(0.08, 625), (1e-9, 1e9), (3, 20), (1, 1)])
def test_the_ticks_of_a_logarithmic_axis_are_powers_of_ten_within_it(low: float, high: float) -> None:
    found = Axis("rate", low, high, log=True).ticks(6)
    assert 1 <= len(found) <= 9
    assert all(low <= value <= high and f"{value:e}".startswith("1.000000e") for value, _ in found)


def test_an_axis_without_a_power_of_ten_is_marked_all_the_same() -> None:
    assert [value for value, _ in Axis("rate", 2, 8, log=True).ticks(6)] == [2, 3, 4, 5, 6, 7, 8]


def test_several_lines_have_several_names() -> None:
    made = picture()
    made.name("one", "#111111")
    made.name("two", "#222222")
    circles = drawn(made, "circle")
    assert [each.attrib["fill"] for each in circles] == ["#111111", "#222222"]
    assert float(circles[0].attrib["cx"]) < float(circles[1].attrib["cx"])


def test_names_that_do_not_fit_beside_each_other_go_on_a_second_line() -> None:
    made = picture()
    for number in range(8):
        made.name(f"breadth-first {number}", "#111111", hollow=number == 7)
    circles = drawn(made, "circle")
    assert sorted({float(each.attrib["cy"]) for each in circles}) == [40, 56]
    assert all(float(each.attrib["cx"]) < WIDTH - 100 for each in circles)
    assert circles[-1].attrib["fill"] == "white"
