"""What an in-order join is expected to cost: the closed forms of 003 for the rates that the user expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millrace.plan.explain.time_text import interval_text
from millrace.plan.joins.join_cost import JoinCost, assured_improvement, switching_product
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import scans_of
from millrace.plan.physical.operator_choice import ALPHA, Method

_PAIR = 1.0
"""What comparing a pair of rows takes where the user does not say, in microseconds."""
_PAPER = {"sync_filter": "Sync-Filter", "filter_order": "Filter-Order", "adaptive": "Adaptive"}


@dataclass(frozen=True)
class Expected:
    """What is expected of streams and machine: rows per second by stream, microseconds per pair of rows."""

    rates: Mapping[str, float] = field(default_factory=dict)
    pair: float | None = None

    @property
    def seconds(self) -> float:
        """What comparing a pair of rows takes."""
        return (_PAIR if self.pair is None else self.pair) / 1e6


def cost_notes(join: Join, method: Method, options: Mapping[str, str], expected: Expected) -> Iterator[str]:
    """The lines about the cost of a join that gives its rows in order; none where no formula is known."""
    alpha = float(options.get("alpha", ALPHA))
    yield _method_text(method, alpha)
    window = _window(join)
    if window is None:
        return
    micros = expected.seconds * 1e6
    length = interval_text(int(micros)) if micros == int(micros) else f"{micros:g} MICROSECONDS"
    c = f"c = {length} per pair{'' if expected.pair is not None else ', as an example'}"
    product = switching_product(expected.seconds, window, alpha)
    switch = f"l1 * l2 = alpha / (c * |w|) = {product:.4g} on"
    yield f"cost (003): Filter-Order pays from {switch}, for {c}, |w| = {window:g} s"
    rates = [_rate(each, expected.rates) for each in join.inputs]
    if None in rates:
        if expected.rates:
            streams = dict.fromkeys(each.stream.name for each in scans_of(join))
            unknown = [name for name in streams if name not in expected.rates]
            yield f"cost (003): no rate is known for {', '.join(unknown)}"
        return
    cost = JoinCost.of(expected.seconds, window, (rates[0] or 0.0, rates[1] or 0.0))
    yield from _figures(cost, method, alpha)


def _method_text(method: Method, alpha: float) -> str:
    match method:
        case "sync_filter":
            return "in order by Sync-Filter: rows wait for each other, and are joined in order of time"
        case "filter_order":
            return "in order by Filter-Order: rows are joined as they arrive, and results wait in a hold buffer"
        case "adaptive":
            return (
                f"in order by Adaptive, alpha {alpha:g}: Sync-Filter while c * |w| * l1 * l2 is below it, else "
                f"Filter-Order, then faster by {assured_improvement(alpha):.0%} or more"
            )


def _window(join: Join) -> float | None:
    """|w| in seconds: half the width of the band; None where there are not two inputs, or a column says it."""
    reaches = [side.ahead for side in join.sides]
    if len(reaches) != 2 or any(each is None for each in reaches):
        return None
    width = sum(each for each in reaches if each is not None)
    return width / 2e6 if width > 0 else None


def _rate(node: Node, rates: Mapping[str, float]) -> float | None:
    """How many rows per second an input sends, before filters; None where a rate is missing or rows are aggregated."""
    known = [rates.get(each.stream.name) for each in scans_of(node)]
    return None if None in known or not known else sum(each for each in known if each is not None)


def _figures(cost: JoinCost, method: Method, alpha: float) -> Iterator[str]:
    """Load and expected response times, as the equations of the paper give them."""
    if cost.slow <= 0:
        yield "cost (003): a stream that sends nothing holds the other back until an ETS advances its bound"
        return
    verdict = "keeps up" if cost.load < 1 else "falls behind on one processor" if cost.keeps_up else "falls behind"
    rates = f"{cost.slow:g} and {cost.fast:g} rows per second"
    yield f"cost (003): at {rates} the load is 2 * c * |w| * l1 * l2 = {cost.load:.3g}: it {verdict}"
    if cost.load >= 1:
        yield "cost (003): rows pile up, and the response time of either method grows as long as the rates last"
        return
    yield (
        f"cost (003): mean response of the fast stream: Sync-Filter {cost.sync_filter:.3g} s, "
        f"Filter-Order {cost.filter_order:.3g} s, I_rel {cost.improvement:.3g} (evenly spaced; at random "
        f"{cost.sync_filter_poisson:.3g} s and {cost.filter_order_poisson:.3g} s)"
    )
    if method == "adaptive":
        chosen = cost.adaptive(alpha)
        sign = ">=" if chosen == "filter_order" else "<"
        yield f"cost (003): Adaptive is in {_PAPER[chosen]}: c * |w| * l1 * l2 = {cost.work:.3g} {sign} {alpha:g}"
