"""The accounting of a stream: what became of the rows that it received.

Rules:
- A stream may have several readers; an input of a queue is one. The counts of each reader add up by themselves, and the
  reader that has processed least gives the account.
- Rows that stand in a buffer on the way to a queue, and those in it, are buffered. Rows that a filter on the way drops
  are processed. Where no queue follows, a row is processed once the first operator has taken it. The same holds if a
  queue holds what joins or windows made of rows: those are results, not rows of a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from millrace.kernel.graph.graph import Arc, GraphNode
from millrace.kernel.metrics import InputCounts, SourceMetrics, least_processed
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.time_contract import ASIDE
from millrace.kernel.updates.queue import Queue


def source_metrics(ingress: Ingress, outlets: Iterable[GraphNode]) -> SourceMetrics:
    """The accounting of a stream that has these sources in the graph."""
    arcs = [arc for node in outlets if node.outlet not in ASIDE for arc in node.outputs]
    counts = least_processed(each for arc in arcs for each in _readers(arc, None))
    return SourceMetrics(
        received=ingress.received,
        late=ingress.late,
        quarantined=ingress.quarantined,
        buffered=counts.waiting,
        bound=ingress.bound,
        greatest=ingress.greatest,
        enabled=ingress.enabled,
        shed=counts.shed,
        superseded=counts.superseded,
        unit=ingress.contract.unit,
        moved_at=ingress.moved_at,
        seen_at=ingress.seen_at,
        aside=ingress.aside.reasons(),
        disorder=ingress.disorder.copy() if ingress.contract.kind == "external" else None,
    )


def _readers(arc: Arc, before: int | None) -> Iterator[InputCounts]:
    """The counts of each reader behind an arc; `before` rows wait upstream of it (None: the arc leaves the source)."""
    consumer, waiting = arc.consumer, (before or 0) + arc.rows
    if isinstance(consumer.operator, Queue):
        counts = consumer.operator.input_counts()[arc.port]
        yield replace(counts, waiting=counts.waiting + waiting)
    elif _leads_to_queue(consumer):
        for following in consumer.outputs:
            yield from _readers(following, waiting)
    else:
        yield InputCounts(waiting=waiting if before is None else before)


def _leads_to_queue(node: GraphNode) -> bool:
    """True if some of the rows that a node passes on go into a queue."""
    return (
        node.operator is not None
        and node.operator.passes_rows
        and any(
            isinstance(arc.consumer.operator, Queue) or _leads_to_queue(arc.consumer)
            for arc in node.outputs
            if not arc.consumer.is_sink
        )
    )
