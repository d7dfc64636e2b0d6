from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from millrace.plan.explain.layered_layout import layers_of


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    size = draw(st.integers(0, 12))
    return {
        str(node): draw(st.lists(st.sampled_from([str(each) for each in range(node)]), max_size=3)) if node else []
        for node in range(size)
    }


@given(graphs())
def test_every_node_stands_once_after_all_that_it_reads(reads: dict[str, list[str]]) -> None:
    layers = layers_of(reads)
    assert sorted(name for layer in layers for name in layer) == sorted(reads)
    depth = {name: number for number, layer in enumerate(layers) for name in layer}
    assert all(depth[each] < depth[name] for name, above in reads.items() for each in above)
    assert all(layers)


def test_two_chains_that_were_named_crosswise_do_not_cross() -> None:
    reads = {"a": [], "b": [], "of b": ["b"], "of a": ["a"]}
    layers = layers_of(reads)
    place = {name: number for layer in layers for number, name in enumerate(layer)}
    pairs = combinations([("a", "of a"), ("b", "of b")], 2)
    assert all((place[x] < place[y]) == (place[z] < place[w]) for (x, z), (y, w) in pairs)
