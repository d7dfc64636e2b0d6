"""Pictures: their panels, categories, ticks and legend, as the words and strokes of an SVG file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from xml.etree import ElementTree

import pytest

from millrace.experiments import drawing
from millrace.experiments.drawing import svg
from millrace.experiments.figures.curves import Chart, Results

FOUND = Results(
    {
        ("B", 0.5): {"latency": 1.0},
        ("B", 10.0): {"latency": 0.05},
        ("B & <C>", 0.5): {"latency": 2.0},
        ("B & <C>", 10.0): {"latency": 0.05},
        ("A", None): {"latency": 20.0},
    }
)
NAMED = Results({("A", 0.0): {"latency": 3.0}, ("A", 1.0): {"latency": 4.5}, ("B", 1.0): {"latency": 9.0}})
LINES = Chart("rate", "seconds", "latency", {"formula": lambda rate: 0.5 / rate}, title="(a) by rate")
BARS = Chart("keys", "ticks", "latency", log="", places=("uniform", "skewed"), title="(b) by keys")


@cache
def picture() -> str:
    return svg("both", [lambda *given: LINES.draw(FOUND, *given), lambda *given: BARS.draw(NAMED, *given)])


def below(name: str) -> Iterator[ElementTree.Element]:
    """All that is drawn in the group with this name."""
    root = ElementTree.fromstring(picture())
    return next(each for each in root.iter() if each.attrib.get("id") == name).iter()


def words(name: str) -> list[str]:
    return [each.text or "" for each in below(name) if each.tag.endswith("}text")]


def test_every_panel_has_its_letter_and_the_titles_of_its_axes() -> None:
    assert {"(a) by rate", "rate", "seconds"} <= set(words("axes_1"))
    assert {"(b) by keys", "keys", "ticks"} <= set(words("axes_2"))


def test_places_that_are_no_numbers_are_named_at_the_axis_and_have_bars_with_their_values() -> None:
    assert {"uniform", "skewed", "3", "4.5", "9"} <= set(words("axes_2"))


def test_a_logarithmic_axis_is_marked_also_where_it_spans_little_more_than_a_decade() -> None:
    assert {"0.5", "1", "2", "5", "10"} <= set(words("axes_1"))


def test_a_logarithmic_axis_without_a_power_of_ten_is_marked_all_the_same() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    axes.plot([20, 80], [300, 700])
    drawing.number_axes(axes, log="xy")
    low, high = axes.get_ylim()
    assert [tick for tick in axes.get_yticks() if low <= tick <= high] == [300, 500, 700]


def test_the_legend_has_every_name_once_and_shows_how_its_line_is_drawn() -> None:
    assert sorted(words("legend_1")) == ["A", "B", "B & <C>", "formula"]
    strokes = [each.attrib.get("style", "") for each in below("legend_1") if each.tag.endswith("}path")]
    assert len([style for style in strokes if "stroke-dasharray" in style]) == 2, "the level and the formula"


def test_a_name_has_one_colour_in_all_panels_and_curves_that_coincide_have_other_markers() -> None:
    palette = drawing.Palette()
    assert palette.colour("A") == palette.colour("A") != palette.colour("B")
    first, second = palette.marker("A"), palette.marker("B")
    assert first["marker"] != second["marker"] and first["markersize"] > second["markersize"]


def test_the_same_data_gives_the_same_picture_without_a_date() -> None:
    before = picture()
    picture.cache_clear()
    assert picture() == before and "dc:date" not in before


def test_what_coincides_with_an_axis_is_not_cut_off() -> None:
    found = Results({("A", 0.0): {"latency": 0.0}, ("A", 1.0): {"latency": -2.0}})
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    Chart("x", "y", "latency", log="").draw(found, axes, drawing.Palette())
    assert axes.get_ylim()[0] < -2.0
    assert not any(line.get_clip_on() for line in axes.lines)


@pytest.mark.parametrize(("installed", "can"), [(None, False), (object(), True)])
def test_pictures_are_drawn_where_matplotlib_is_installed(
    installed: object, can: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "find_spec", {"matplotlib": installed}.get)
    assert drawing.can_draw() is can
