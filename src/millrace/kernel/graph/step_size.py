"""How many rows an operator takes in a step, and how many a stream gives the graph at once.

Rules:
- Columns are computed whole: an operator takes all rows of a batch, unless its strategy is `batch:K`. Then it takes at
  most K.
- An operator that calls functions of a user row by row takes as many rows as it is expected to process in a moment,
  judged by its last steps, and at least one. So what it yields goes on, and other queries get their turn, after each
  moment. Functions that take columns are for whole batches.
- A stream gives such operators the rows of at most `_AHEAD` moments, and no more before they have taken all of these.
  So little work is left in the graph when a host wants it at rest. Operators behind a queue do not count, for a queue
  keeps what it has not released.

Only a host that delivers results as they come has a moment. Others let each operator take whole batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.graph import Graph, GraphNode

_AHEAD = 5
_GROWTH = 4
"""How many times the rows that have come so far may come at once, while the functions may not have been measured."""


class StepSize:
    """Cuts batches by strategy and by measured time; takes at most `rows` in a step, if that is given."""

    def __init__(self, rows: int | None = None, moment: Microseconds | None = None) -> None:
        self.rows = rows
        self.moment = moment
        self._below: dict[str, tuple[GraphNode, ...]] = {}
        self._sources: dict[str, list[GraphNode]] = {}

    def adopt(self, graph: Graph) -> None:
        """Take over the operators of a graph as it is now, and their strategies."""
        self._sources = {}
        for node in graph.sources():
            self._sources.setdefault(node.stream, []).append(node)
        self._below = {name: tuple(dict.fromkeys(_calling(nodes))) for name, nodes in self._sources.items()}
        for node in graph.operators():
            given = [each for each in (self.rows, self._batch_of(node)) if each is not None]
            node.most = min(given, default=None)
            node.timed = self.moment is not None and node.operator is not None and node.operator.calls_by_row

    def _batch_of(self, node: GraphNode) -> int | None:
        name, _, size = node.strategy.partition(":")
        return int(size) if name == "batch" and self.moment is not None else None

    def of(self, node: GraphNode) -> int | None:
        """How many rows an operator takes in its next step; None is any number."""
        if self.moment is None or not node.timed:
            return node.most
        timed = max(1, int(self.moment / node.row_cost)) if node.row_cost else 1
        return timed if node.most is None else min(timed, node.most)

    def measured(self, node: GraphNode, rows: int, spent: Microseconds) -> None:
        """Learn how long an operator that is timed took for some rows."""
        if rows:
            each = max(spent, 1) / rows
            node.row_cost = (node.row_cost + each) / 2 if node.row_cost else each

    def piece(self, source: GraphNode) -> int | None:
        """How many rows a source puts in its buffer as one batch, each with its own bound; None is any number."""
        sizes = [arc.consumer.most for arc in source.outputs if arc.consumer.most is not None]
        return min(sizes, default=self.rows)

    def allowance(self, stream: str) -> int | None:
        """How many rows a stream may give now; None is any number."""
        calling = self._below.get(stream, ()) if self.moment is not None else ()
        if not calling:
            return None
        if any(node.waiting for node in calling):
            return 0
        assert self.moment is not None
        given = max(node.metrics.rows_out for node in self._sources[stream])
        cost = sum(node.row_cost * node.metrics.rows_in for node in calling) / max(given, 1)
        most = max(1, _GROWTH * given)
        return most if not cost else max(1, min(most, int(_AHEAD * self.moment / cost)))


def _calling(nodes: Iterable[GraphNode]) -> Iterator[GraphNode]:
    """The operators that call functions of a user, downstream of some nodes, up to queues."""
    for node in nodes:
        for arc in node.outputs:
            operator = arc.consumer.operator
            if operator is not None and not operator.queues:
                if operator.calls_by_row:
                    yield arc.consumer
                yield from _calling([arc.consumer])
