"""What a change makes of a query graph: which operators are new, which stay with their state, and which go."""

from __future__ import annotations

from typing import Any, Literal

from millrace.plan.explain.query_picture import PictureNode, query_picture
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical

Became = Literal["added", "removed", "kept"]


def difference(before: QueryNetwork, after: QueryNetwork) -> dict[str, Any]:
    """Each node of both pictures with what becomes of it, the arcs between them, and the sentences about it."""
    old, new = query_picture(physical(before)), query_picture(physical(after))
    was, will = ({each.name: each for each in picture.nodes} for picture in (old, new))
    nodes = [(each, _became(each.name, was, will)) for each in {**was, **will}.values()]
    arcs = {(each.producer, each.consumer, each.port): each for each in (*old.arcs, *new.arcs)}
    options = {each.name: dict(each.options) for each in before.queries}
    altered = [each.name for each in after.queries if options.get(each.name, dict(each.options)) != dict(each.options)]
    return {
        "nodes": [
            {"name": each.name, "kind": each.kind, "text": each.text, "became": became} for each, became in nodes
        ],
        "arcs": [[arc.producer, arc.consumer] for arc in arcs.values()],
        "altered": altered,
        "sentence": _sentence([(each, became) for each, became in nodes if each.kind == "operator"], altered),
    }


def _became(name: str, was: dict[str, PictureNode], will: dict[str, PictureNode]) -> Became:
    return "kept" if name in was and name in will else "added" if name in will else "removed"


def _sentence(nodes: list[tuple[PictureNode, Became]], altered: list[str]) -> str:
    count = {kind: sum(became == kind for _, became in nodes) for kind in ("added", "removed", "kept")}
    words = [f"{_operators(number)} {verb}" for kind, verb in _VERBS.items() if (number := count[kind])]
    words += [f"{', '.join(altered)} gets other options"] if altered else []
    return "; ".join(words) or "nothing changes"


_VERBS = {"added": "will be added", "removed": "will be removed", "kept": "will stay, with state"}


def _operators(number: int) -> str:
    return "1 operator" if number == 1 else f"{number} operators"
