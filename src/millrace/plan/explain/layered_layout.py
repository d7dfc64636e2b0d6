"""Where the nodes of a graph stand in a picture: in layers from left to right, each in an order with few crossings.

Rules:
- A node stands one layer after the last of those that it reads.
- Within a layer nodes stand near the mean place of their neighbours (the barycenter method), swept to and fro.
- The result depends on the graph alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SWEEPS = 4


def layers_of(reads: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The nodes layer by layer; `reads` has what each node reads, and names every node after those.

    >>> layers_of({"a": [], "b": [], "union": ["a", "b"], "q": ["union"]})
    [['a', 'b'], ['union'], ['q']]
    """
    depth: dict[str, int] = {}
    for name, above in reads.items():
        depth[name] = max((depth[each] + 1 for each in above), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in reads:
        layers[depth[name]].append(name)
    read_by: dict[str, list[str]] = {name: [] for name in reads}
    for name, above in reads.items():
        for each in above:
            read_by[each].append(name)
    for sweep in range(_SWEEPS):
        neighbours = reads if sweep % 2 == 0 else read_by
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _sort(layer, layers, neighbours)
    return layers


def _sort(layer: list[str], layers: list[list[str]], neighbours: Mapping[str, Sequence[str]]) -> None:
    """Order one layer by the mean place of the neighbours of its nodes; one without any keeps its place."""
    places = {name: place for each in layers for place, name in enumerate(each)}

    def mean(name: str) -> float:
        near = neighbours[name]
        return sum(places[each] for each in near) / len(near) if near else places[name]

    layer.sort(key=mean)
