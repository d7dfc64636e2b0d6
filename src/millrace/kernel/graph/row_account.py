"""What became of the rows of a stream that were let in.

Rules:
- A stream may be read in several ways; an input of a queue is one. What each way has done with the rows adds up by
  itself, and of all ways the one counts that has processed least.
- Rows that stand in a buffer on the way to a queue, and those in it, are buffered. Rows that a filter on the way drops
  are processed. Where no queue follows, a row is processed once the first operator has taken it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from millrace.kernel.graph.graph import Arc, Node
from millrace.kernel.metrics import InputCounts, least_processed
from millrace.kernel.progress.admission import LATE
from millrace.kernel.updates.queue import Queue


def counts_of(outlets: Iterable[Node]) -> InputCounts:
    """What the reader that has processed least has done with the rows of a stream, which has these outlets."""
    arcs = [arc for node in outlets if node.outlet != LATE for arc in node.outputs]
    return least_processed(each for arc in arcs for each in _readers(arc, None))


def _readers(arc: Arc, before: int | None) -> Iterator[InputCounts]:
    """What is behind an arc, if so many rows stand before it; None stands for the arc out of the source."""
    consumer, waiting = arc.consumer, (before or 0) + arc.rows
    if isinstance(consumer.operator, Queue):
        counts = consumer.operator.input_counts()[arc.port]
        yield replace(counts, waiting=counts.waiting + waiting)
    elif _leads_to_queue(consumer):
        for following in consumer.outputs:
            yield from _readers(following, waiting)
    else:
        yield InputCounts(waiting=waiting if before is None else before)


def _leads_to_queue(node: Node) -> bool:
    """Whether some of what a node yields goes into a queue."""
    return any(
        isinstance(arc.consumer.operator, Queue) or _leads_to_queue(arc.consumer)
        for arc in node.outputs
        if not arc.consumer.is_sink
    )
