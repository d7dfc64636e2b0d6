"""Relations as the inputs of a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from millrace.api.relation_times import ends_windows, time_column
from millrace.api.sql_text.join_text import InputText, JoinText, columns_of, named, times_shown
from millrace.plan.nodes.aggregate_nodes import WINDOW_END

if TYPE_CHECKING:
    from millrace.api.relations import Relation


def inputs_of(relations: Sequence[Relation], names: object, taken: Sequence[str] = ()) -> list[InputText]:
    """The relations under names that differ from each other and from those that are taken."""
    found = named([_stream_name(each) for each in relations], names, taken=taken)
    return [_as_input(each, name) for each, name in zip(relations, found, strict=True)]


def beside(left: Relation, right: Relation, names: object) -> tuple[JoinText, InputText]:
    """The join so far, or the left relation as its first input, and the right relation as the next input."""
    if left.joined:
        [further] = inputs_of([right], names, taken=[each.name for each in left.joined.inputs])
        return left.joined, further
    first, further = inputs_of([left, right], names)
    return JoinText((first,), (), ()), further


def extended(relation: Relation, how: str) -> Relation:
    """What a further relation is joined to: a join that can take one more input, or the relation as a whole.

    A condition on joined rows may be checked after a further join only if that join loses none of them.
    """
    base = relation._base()
    if base.joined is None or base.joined.looks_back or (base.predicate and how in ("right", "full")):
        return replace(relation, ordered=None, joined=None)
    return base


def _stream_name(relation: Relation) -> str | None:
    """The name of the stream whose rows these are; None if they are not those of one stream."""
    name = relation.source
    return name if columns_of(name) is not None and relation.items == "*" else None


def _as_input(relation: Relation, name: str) -> InputText:
    plain = replace(relation, ordered=None)
    text = relation.source if plain._is_stream() else f"({plain._select})"
    root = relation._root()
    if relation.timed is not None and relation.items == "*":
        times = times_shown(relation.timed, root.schema.names)
        return InputText(text, name, times, ends=len(times) == 1 and any(each.ends for each in relation.timed))
    ends = ends_windows(root)
    time = WINDOW_END if ends else time_column(root)
    return InputText(text, name, (time,) if time is not None and time in root.schema.names else (), ends)
