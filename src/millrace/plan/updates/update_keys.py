"""The checks of update semantics (002 section 3.2): which columns of a tree are the update key, or why there are none.

Rules:
- Filters drop rows. A map keeps the key as it is, under any name; GROUP BY contains it; the inputs of a union have the
  same one; a join equates those of both inputs.
- Results of a window aggregate are told apart by all columns of GROUP BY.
- All else has no meaning where each row replaces the one before: it is refused. With an append queue, where all rows
  count, a query may have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from millrace.errors import Place, RequestError
from millrace.kernel.columns.expressions import Call, Cast, Column, Expression
from millrace.kernel.progress.time_contract import LATE
from millrace.plan.nodes.aggregate_nodes import Aggregate, AnyWindow, Window
from millrace.plan.nodes.join_nodes import AnyJoin, Following, Join, RowsJoin
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Project, Scan, Union, scans_of

Names = frozenset[str]

APPEND = "read with WITH (queue = 'append'), which answers over all rows"
"""What to do instead, after "let the query"."""


class NoUpdateSemantics(RequestError):
    """Something in a query has no meaning where rows replace each other.

    `node` is where in its tree, and `part` what of that node, for the language to find it in the text.
    """

    def __init__(
        self, fact: str, *, hint: str, node: Node | None = None, part: str = "", place: Place | None = None
    ) -> None:
        super().__init__(fact, hint=hint, place=place)
        self.node = node
        self.part = part


def meaningless(what: str, node: Node, instead: str = "Leave it out") -> NoUpdateSemantics:
    """The refusal of something that is only for rows that do not replace each other."""
    return NoUpdateSemantics(
        f"{what} has no meaning over update streams", hint=f"{instead}, or let the query {APPEND}.", node=node
    )


@dataclass(frozen=True)
class ResultKey:
    """What tells rows apart that do not update each other: for each column all names that hold it.

    `update` is the update key of the streams, `further` are the other columns of GROUP BY.
    """

    update: tuple[Names, ...]
    further: tuple[Names, ...] = ()


def is_update(scan: Scan) -> bool:
    """True if a scan gives rows of which later ones replace earlier ones; late rows replace nothing."""
    return scan.stream.update_key is not None and scan.outlet != LATE


def reads_updates(node: Node) -> bool:
    """True if some stream that a tree reads is an update stream."""
    return any(is_update(each) for each in scans_of(node))


def key_names(root: Node) -> tuple[str, ...]:
    """The columns of a query's results that tell them apart; refuses a query without update semantics."""
    _refuse_mixture(root)
    found = result_key(root)
    if not all(found.further):
        raise NoUpdateSemantics(
            "the results do not hold all columns of GROUP BY",
            hint="Each of them is an update of one group: add them to the SELECT list, as they are.",
            node=root,
        )
    names = root.column_names()
    return tuple(first_of(each, names) for each in (*found.update, *found.further))


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
    raise NoUpdateSemantics(
        f'"{name}" is no update stream, and "{update.stream.name}" is one',
        hint=f"{declare} the query {APPEND}.",
        node=plain,
    )


def result_key(node: Node) -> ResultKey:
    """The update key in a tree's rows; refuses a tree without update semantics."""
    match node:
        case Scan():
            return ResultKey(tuple(frozenset((name,)) for name in node.stream.update_key or ()))
        case Filter():
            return result_key(node.input)
        case Project():
            return _mapped(node)
        case Union():
            return _united(node)
        case Aggregate():
            return _aggregated(node)
        case Join():
            return _joined(node)
    raise meaningless(node.sql_name, node)


# Maps


def _mapped(node: Project) -> ResultKey:
    given = result_key(node.input)
    held = _held(node.columns, node.input.schema)
    update = tuple(_named(held, each) for each in given.update)
    if (lost := _lost(given.update, update)) is not None:
        altered = next((each for _, each in node.columns if lost in each.columns()), None)
        short = lost.rpartition(".")[2]
        fact = f'the update key "{short}" is ' + ("not selected" if altered is None else f"altered: {altered}")
        hint = (
            f"add {short} to the SELECT list, or let the query {APPEND}."
            if altered is None
            else f"select {short} as it is, beside what is computed of it."
        )
        raise NoUpdateSemantics(fact, hint=f"Results are updates of their key: {hint}", node=node)
    return ResultKey(update, tuple(_named(held, each) for each in given.further))


def _held(columns: Iterable[tuple[str, Expression]], schema: pa.Schema) -> dict[str, str | None]:
    return {name: held_by(each, schema) for name, each in columns}


def _named(held: dict[str, str | None], names: Names) -> Names:
    return frozenset(name for name, column in held.items() if column in names)


def _lost(key: Iterable[Names], kept: Iterable[Names]) -> str | None:
    """The first column of a key that no name holds any more."""
    return next((min(names) for names, left in zip(key, kept, strict=True) if not left), None)


def held_by(expression: Expression, schema: pa.Schema) -> str | None:
    """The column whose value an expression is; a number of a wider type is the same number."""
    match expression:
        case Column(name) | Call("canonical", (Column(name),)):
            return name
        case Cast(Column(name), kind) if _is_wider(schema.field(name).type, kind):
            return name
    return None


def _is_wider(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_integer(given) and pa.types.is_integer(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    return given == wanted


# Unions


def _united(node: Union) -> ResultKey:
    if any(isinstance(each, Aggregate | AnyJoin) for each in walk(node)):
        raise meaningless("a union of results of windows or joins", node)
    first, *others = [result_key(each).update for each in node.inputs]
    for other in others:
        matched = [next((each for each in other if each & names), None) for names in first]
        if None in matched or len(first) != len(other):
            raise NoUpdateSemantics(
                f"the inputs of the union have different update keys, ({_listed(first)}) and ({_listed(other)})",
                hint=f"Select the same key from each, under one name, or let the query {APPEND}.",
                node=node,
            )
        first = tuple(names & each for names, each in zip(first, matched, strict=True) if each is not None)
    return ResultKey(first)


def _listed(key: Iterable[Names]) -> str:
    return ", ".join(min(each) for each in key)


# Windows


def _aggregated(node: Aggregate) -> ResultKey:
    _refuse_window(node)
    given = result_key(node.input)
    held = _held(node.keys, node.input.schema)
    update = tuple(_named(held, each) for each in given.update)
    if (lost := _lost(given.update, update)) is not None:
        raise NoUpdateSemantics(
            f'GROUP BY does not contain the update key "{lost}"',
            hint=f"Each result is an update of its key: add {lost} to GROUP BY, or let the query {APPEND}.",
            node=node,
            part="groups",
        )
    known = {name for names in update for name in names}
    return ResultKey(update, tuple(frozenset((name,)) for name in held if name not in known))


def _refuse_window(node: Aggregate) -> None:
    window = node.window
    if not isinstance(window, Window) or window.unit == "rows":
        raise meaningless(window.sql_name, node, "Write [RANGE 1 MINUTE SLIDE 1 MINUTE]")
    if any(isinstance(each, AnyJoin) for each in walk(node.input)):
        raise meaningless("a window aggregate over a join", node)
    below = [each for each in walk(node.input) if isinstance(each, Aggregate)]
    if len(below) > 1:
        raise NoUpdateSemantics(
            "a window aggregate over two others is not built for update streams yet",
            hint=f"Leave one of the three out, or let the query {APPEND}.",
            node=node,
        )
    if below and not _is_made_of(window, below[0].window):
        raise NoUpdateSemantics(
            "a window over results of windows is not made of whole ones",
            hint="Let its RANGE and SLIDE be multiples of the inner SLIDE, and that at most the inner RANGE, or let "
            f"the query {APPEND}.",
            node=node,
        )


def _is_made_of(upper: Window, lower: AnyWindow) -> bool:
    """True if all rows of lower windows that end in an upper one are in windows that end where one of them does."""
    if not isinstance(lower, Window):
        return True  # It is refused itself.
    offset = upper.origin - lower.origin - lower.range
    return lower.slide <= lower.range and not any(each % lower.slide for each in (upper.range, upper.slide, offset))


# Joins


def _joined(node: Join) -> ResultKey:
    pairs, _ = key_equalities(node)
    first, second = (result_key(each).update for each in node.inputs)
    found = []
    for names in first:
        right = next(right for left, right in pairs if left in names)
        found.append(names | next(each for each in second if right in each))
    return ResultKey(tuple(found))


def key_equalities(node: Join) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The equalities of a join that equate the update keys of its two inputs, and those beside them."""
    _refuse_join(node)
    first, second = (result_key(each).update for each in node.inputs)
    equal = list(zip(*(side.keys for side in node.sides), strict=True))
    pairs: list[tuple[str, str]] = []
    for names in first:
        pair = next((each for each in equal if each[0] in names and any(each[1] in other for other in second)), None)
        if pair is None:
            raise _not_equated(node, first, second)
        pairs.append(pair)
    matched = [next(place for place, other in enumerate(second) if right in other) for _, right in pairs]
    if sorted(matched) != list(range(len(second))):
        raise _not_equated(node, first, second)
    return pairs, [each for each in equal if each not in pairs]


def _refuse_join(node: Join) -> None:
    below = [each for one in node.inputs for each in walk(one)]
    refused = {
        "a join of more than two inputs": len(node.inputs) > 2 or any(isinstance(each, AnyJoin) for each in below),
        "an outer join": any(side.outer for side in node.sides),
        "a join of results of windows": any(isinstance(each, Aggregate) for each in below),
        "a join with a limit of time in a column": any(side.until is not None for side in node.sides),
        "a join by another time than the later one": node.time != "max" or node.joint,
    }
    for what, is_so in refused.items():
        if is_so:
            raise meaningless(what, node)


def _not_equated(node: Join, first: Sequence[Names], second: Sequence[Names]) -> NoUpdateSemantics:
    written = " AND ".join(f"{min(one)} = {min(other)}" for one, other in zip(first, second, strict=False))
    same = len(first) == len(second)
    hint = f"Join on the whole key of both, ON {written}" if same else "Join streams with the same update key"
    return NoUpdateSemantics(
        f"the join does not equate the update keys of its inputs, ({_listed(first)}) and ({_listed(second)})",
        hint=f"{hint}, or let the query {APPEND}.",
        node=node,
    )
