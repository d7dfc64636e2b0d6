"""The checks of update semantics (002 section 3.2): which columns of a tree are the update key, or why there are none.

Rules:
- Filters drop rows. A map keeps the key as it is, under whatever name; GROUP BY contains it; the inputs of a union have
  the same one; a join equates those of both inputs.
- Results of a window aggregate are told apart by all columns of GROUP BY.
- Everything else has no meaning for rows of which each replaces the one before: it is refused, and can be had with an
  append queue, where all rows count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from millrace.kernel.columns.expressions import Call, Cast, Column, Expression
from millrace.kernel.progress.time_contract import LATE
from millrace.plan.nodes.aggregate_nodes import Aggregate, AnyWindow, Window
from millrace.plan.nodes.join_nodes import AnyJoin, Following, Join, RowsJoin
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Project, Scan, Union
from millrace.plan.updates.refusals import APPEND as APPEND
from millrace.plan.updates.refusals import NotAnUpdate as NotAnUpdate
from millrace.plan.updates.refusals import meaningless as meaningless
from millrace.plan.updates.refusals import node_words, window_words

Names = frozenset[str]


@dataclass(frozen=True)
class Keyed:
    """What tells rows apart that do not update each other: for each column all names that hold it.

    `update` is the update key of the streams, `further` are the other columns of GROUP BY.
    """

    update: tuple[Names, ...]
    further: tuple[Names, ...] = ()

    @property
    def all(self) -> tuple[Names, ...]:
        return (*self.update, *self.further)


def is_update(scan: Scan) -> bool:
    """Whether a scan gives rows of which later ones replace earlier ones; rows that came too late do not."""
    return scan.stream.update_key is not None and scan.outlet != LATE


def scans_of(node: Node) -> list[Scan]:
    """The scans of a tree."""
    return [each for each in walk(node) if isinstance(each, Scan)]


def reads_updates(node: Node) -> bool:
    """Whether some stream that a tree reads is an update stream."""
    return any(is_update(each) for each in scans_of(node))


def is_of_updates(node: Node) -> bool:
    """Whether all streams that a tree reads are update streams."""
    return all(is_update(each) for each in scans_of(node))


def key_names(root: Node) -> tuple[str, ...]:
    """The columns of a query's results that tell them apart; refuses a query without update semantics."""
    _refuse_mixture(root)
    found = keyed(root)
    names = list(root.schema.names)
    for each in found.further:
        if not each:
            raise NotAnUpdate(
                "the results do not hold all columns of GROUP BY",
                hint="Each of them is an update of one group: add them to the SELECT list, as they are.",
                node=root,
            )
    return tuple(first_of(each, names) for each in found.all)


def first_of(held_by: Names, names: Sequence[str]) -> str:
    """The first of the names that hold a column."""
    return next(name for name in names if name in held_by)


def _refuse_mixture(root: Node) -> None:
    scans = scans_of(root)
    update = next((each for each in scans if is_update(each)), None)
    plain = next((each for each in scans if not is_update(each)), None)
    if plain is None or update is None:
        return
    name = plain.stream.late_into if plain.outlet == LATE else plain.stream.name
    in_vain = plain.outlet == LATE or any(isinstance(each, Following | RowsJoin) for each in walk(root))
    declare = "Let" if in_vain else f'Declare UPDATE KEY for "{name}" as well, or let'
    raise NotAnUpdate(
        f'"{name}" is no update stream, and "{update.stream.name}" is one',
        hint=f"{declare} the query {APPEND}.",
        node=plain,
    )


def keyed(node: Node) -> Keyed:
    """The update key in a tree's rows; refuses a tree without update semantics."""
    match node:
        case Scan():
            return Keyed(tuple(frozenset((name,)) for name in node.stream.update_key or ()))
        case Filter():
            return keyed(node.input)
        case Project():
            return _mapped(node, keyed(node.input))
        case Union():
            return _united(node)
        case Aggregate():
            return _aggregated(node)
        case Join():
            return _joined(node)
    raise meaningless(node_words(node), node)


# Maps


def _mapped(node: Project, given: Keyed) -> Keyed:
    schema = node.input.schema
    held = {name: held_by(each, schema) for name, each in node.columns}
    update = tuple(_named(held, each) for each in given.update)
    for names, kept in zip(given.update, update, strict=True):
        if not kept:
            raise _not_kept(node, sorted(names)[0])
    return Keyed(update, tuple(_named(held, each) for each in given.further))


def _named(held: dict[str, str | None], names: Names) -> Names:
    return frozenset(name for name, column in held.items() if column in names)


def held_by(expression: Expression, schema: pa.Schema) -> str | None:
    """The column whose value an expression is; a number of a wider type is the same number."""
    match expression:
        case Column(name):
            return name
        case Call("canonical", (Column(name),)):
            return name
        case Cast(Column(name), kind) if _is_wider(schema.field(name).type, kind):
            return name
    return None


def _is_wider(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_integer(given) and pa.types.is_integer(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    return given == wanted


def _not_kept(node: Project, column: str) -> NotAnUpdate:
    altered = next((each for name, each in node.columns if column in each.columns()), None)
    short = column.rpartition(".")[2]
    if altered is not None:
        return NotAnUpdate(
            f'the update key "{short}" is altered: {altered}',
            hint=f"Results are updates of their key: select {short} as it is, beside what is computed of it.",
            node=node,
        )
    return NotAnUpdate(
        f'the update key "{short}" is not selected',
        hint=f"Results are updates of their key: add {short} to the SELECT list, or let the query {APPEND}.",
        node=node,
    )


# Unions


def _united(node: Union) -> Keyed:
    if any(isinstance(each, Aggregate | AnyJoin) for each in walk(node)):
        raise meaningless("a union of results of windows or joins", node)
    first, *others = [keyed(each).update for each in node.inputs]
    for other in others:
        matched = [next((each for each in other if each & names), None) for names in first]
        if None in matched or len(first) != len(other):
            raise NotAnUpdate(
                f"the inputs of the union have different update keys, ({_listed(first)}) and ({_listed(other)})",
                hint=f"Select the same key from each, under one name, or let the query {APPEND}.",
                node=node,
            )
        first = tuple(names & each for names, each in zip(first, matched, strict=True) if each is not None)
    return Keyed(first)


def _listed(key: Iterable[Names]) -> str:
    return ", ".join(sorted(each)[0] for each in key)


# Windows


def _aggregated(node: Aggregate) -> Keyed:
    window = node.window
    if not isinstance(window, Window) or window.unit == "rows":
        raise meaningless(window_words(window), node, "Write [RANGE 1 MINUTE SLIDE 1 MINUTE]")
    if any(isinstance(each, AnyJoin) for each in walk(node.input)):
        raise meaningless("a window aggregate over a join", node)
    below = [each for each in walk(node.input) if isinstance(each, Aggregate)]
    if len(below) > 1:
        raise NotAnUpdate(
            "a window aggregate over two others is not built for update streams yet",
            hint=f"Leave one of the three out, or let the query {APPEND}.",
            node=node,
        )
    if below and not _is_made_of(window, below[0].window):
        raise NotAnUpdate(
            "a window over results of windows is not made of whole ones",
            hint="Let its RANGE and SLIDE be multiples of the inner SLIDE, and that at most the inner RANGE, or let "
            f"the query {APPEND}.",
            node=node,
        )
    given, schema = keyed(node.input), node.input.schema
    held = {name: held_by(each, schema) for name, each in node.keys}
    update = tuple(_named(held, each) for each in given.update)
    for names, kept in zip(given.update, update, strict=True):
        if not kept:
            column = sorted(names)[0]
            raise NotAnUpdate(
                f'GROUP BY does not contain the update key "{column}"',
                hint=f"Each result is an update of its key: add {column} to GROUP BY, or let the query {APPEND}.",
                node=node,
                part="groups",
            )
    known = {name for names in update for name in names}
    return Keyed(update, tuple(frozenset((name,)) for name in held if name not in known))


def _is_made_of(upper: Window, lower: AnyWindow) -> bool:
    """Whether all rows of lower windows that end in an upper one are in windows that end where one of them does."""
    if not isinstance(lower, Window):
        return True  # It is refused for itself.
    offset = upper.origin - lower.origin - lower.range
    return lower.slide <= lower.range and not any(each % lower.slide for each in (upper.range, upper.slide, offset))


# Joins


@dataclass(frozen=True)
class Paired:
    """How a join equates the update keys of its inputs: the columns of each, and the equalities beside them."""

    keys: tuple[tuple[str, ...], tuple[str, ...]]
    others: tuple[tuple[str, str], ...]


def _joined(node: Join) -> Keyed:
    equal = dict(zip(*paired(node).keys, strict=True))
    first, second = (keyed(each).update for each in node.inputs)
    found = []
    for names in first:
        left = next(name for name in equal if name in names)
        found.append(names | next(each for each in second if equal[left] in each))
    return Keyed(tuple(found))


def paired(node: Join) -> Paired:
    """The equalities of a join's keys; refuses a join that does not equate the update keys of two inputs."""
    _refuse_join(node)
    first, second = (keyed(each).update for each in node.inputs)
    equal = list(zip(*(side.keys for side in node.sides), strict=True))
    chosen: list[tuple[str, str]] = []
    for names in first:
        pair = next((each for each in equal if each[0] in names and any(each[1] in other for other in second)), None)
        if pair is None:
            raise _not_equated(node, first, second)
        chosen.append(pair)
    matched = [next(place for place, other in enumerate(second) if right in other) for _, right in chosen]
    if sorted(matched) != list(range(len(second))):
        raise _not_equated(node, first, second)
    others = tuple(each for each in equal if each not in chosen)
    return Paired((tuple(left for left, _ in chosen), tuple(right for _, right in chosen)), others)


def _refuse_join(node: Join) -> None:
    for what, is_so in _of_join(node):
        if is_so:
            raise meaningless(what, node)


def _of_join(node: Join) -> Iterator[tuple[str, bool]]:
    below = [each for one in node.inputs for each in walk(one)]
    yield "a join of more than two inputs", len(node.inputs) > 2 or any(isinstance(each, AnyJoin) for each in below)
    yield "an outer join", any(side.outer for side in node.sides)
    yield "a join of results of windows", any(isinstance(each, Aggregate) for each in below)
    yield "a join with a limit of time in a column", any(side.until is not None for side in node.sides)
    yield "a join by another time than the later one", node.time != "max" or node.joint


def _not_equated(node: Join, first: Sequence[Names], second: Sequence[Names]) -> NotAnUpdate:
    keys = f"({_listed(first)}) and ({_listed(second)})"
    written = " AND ".join(f"{sorted(one)[0]} = {sorted(other)[0]}" for one, other in zip(first, second, strict=False))
    same = len(first) == len(second)
    hint = f"Join on the whole key of both, ON {written}" if same else "Join streams with the same update key"
    return NotAnUpdate(
        f"the join does not equate the update keys of its inputs, {keys}",
        hint=f"{hint}, or let the query {APPEND}.",
        node=node,
    )
