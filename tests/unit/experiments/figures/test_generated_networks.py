"""The graphs of the papers, as the planner builds them."""

from __future__ import annotations

import pytest

from millrace.experiments.figures.generated_networks import (
    LATENT,
    NONE,
    ON_DEMAND,
    GeneratedStream,
    every,
    selected_union,
    slide_and_union,
)
from millrace.language import parse_network
from millrace.plan.physical.stages import physical


def labels(text: str) -> list[str]:
    """The operators of a network's graph."""
    graph = physical(parse_network(text)).whole()
    return sorted(node.operator.label for node in graph.operators() if node.operator is not None)


@pytest.mark.parametrize("time", [NONE, ON_DEMAND, every(50)])
def test_two_selections_and_an_ordered_union_are_three_operators(time: str) -> None:
    assert labels(selected_union(GeneratedStream("a", 50, time), GeneratedStream("b", 0.05, time), 10)) == [
        "filter",
        "filter",
        "merge",
    ]


def test_latent_streams_are_united_without_waiting() -> None:
    assert labels(selected_union(GeneratedStream("a", 50, LATENT), GeneratedStream("b", 0.05, LATENT), 10)) == [
        "filter",
        "filter",
        "union",
    ]


@pytest.mark.parametrize("selections", [1, 2, 4, 8])
def test_selections_over_each_other_stay_apart(selections: int) -> None:
    text = slide_and_union([GeneratedStream(name, 50, ON_DEMAND) for name in "abc"], 10, slide=0.5, below=selections)
    found = labels(text)
    assert found.count("filter") == 2 * selections + 2
    assert found.count("merge") == 2
    assert found.count("window aggregate") == 1


def test_periodic_ets_come_at_their_rate() -> None:
    (stream, _) = parse_network(
        selected_union(GeneratedStream("a", 50, every(500)), GeneratedStream("b", 0.05, every(500)), 10)
    ).streams()
    assert stream.time.every == 2000
