"""Where break nodes free most memory: the placement of Chain (001 section 3), from measured selectivity and cost.

Rules:
- A path of operators is cut so that each piece is as steep as can be: of all ways on from a point of the progress
  chart (work so far, size of a row so far) the steepest one is the next piece (the lower envelope).
- A row that has left the last operator of a path for a sink counts as of size 0.
- The scheduler prefers the fragment that frees most per unit of work. Operators that have not been measured are left
  alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.kernel.graph.graph import GraphNode

_LEAST_COST = 0.01
"""Microseconds per row, at least: work too short for the clock still counts."""


@dataclass(frozen=True)
class Placement:
    """The arcs to break, and what each operator's fragment frees per microsecond."""

    breaks: set[tuple[str, str]]
    priorities: dict[str, float]


def place(operators: Sequence[GraphNode]) -> Placement:
    """Break nodes for the operators that allow it and have been measured."""
    piece_of: dict[GraphNode, int] = {}
    priorities: dict[str, float] = {}
    for path in _paths([node for node in operators if node.chain and node.metrics.rows_in]):
        for piece, slope in envelope(*_chart(path)):
            number = len(piece_of)
            for node in path[piece]:
                piece_of[node] = number
                priorities[node.name] = slope
    breaks = {
        (arc.producer.name, node.name)
        for node in piece_of
        for arc in node.inputs
        if arc.producer in piece_of and piece_of[arc.producer] != piece_of[node]
    }
    return Placement(breaks, priorities)


def _paths(nodes: Sequence[GraphNode]) -> list[list[GraphNode]]:
    """The nodes in runs of one consumer and one input each."""
    paths: list[list[GraphNode]] = []
    ends: dict[GraphNode, list[GraphNode]] = {}
    for node in nodes:
        before = node.inputs[0].producer if len(node.inputs) == 1 else None
        path = ends.pop(before, None) if before is not None and len(before.outputs) == 1 else None
        if path is None:
            path = []
            paths.append(path)
        path.append(node)
        ends[node] = path
    return paths


def _chart(path: Sequence[GraphNode]) -> tuple[list[float], list[float]]:
    """The progress chart of a row on a path: work done and size left, after each operator, from (0, 1) on."""
    work, sizes = [0.0], [1.0]
    for node in path:
        seen = node.metrics
        work.append(work[-1] + sizes[-1] * max(seen.cost / seen.rows_in, _LEAST_COST))
        leaves = all(arc.consumer.is_sink for arc in node.outputs)
        sizes.append(0.0 if leaves else sizes[-1] * seen.rows_out / seen.rows_in)
    return work, sizes


def envelope(work: Sequence[float], sizes: Sequence[float]) -> list[tuple[slice, float]]:
    """The pieces of the lower envelope of a progress chart, each as the operators it spans and its steepness.

    >>> envelope([0.0, 1.0, 2.0, 3.0], [1.0, 0.9, 0.1, 0.0])
    [(slice(0, 2, None), 0.45), (slice(2, 3, None), 0.1)]
    """
    pieces: list[tuple[slice, float]] = []
    start = 0
    while start < len(work) - 1:
        slopes = [((sizes[start] - sizes[end]) / (work[end] - work[start]), end) for end in range(start + 1, len(work))]
        slope, end = max(slopes)
        pieces.append((slice(start, end), slope))
        start = end
    return pieces
