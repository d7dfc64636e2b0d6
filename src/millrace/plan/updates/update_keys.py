"""The checks of update semantics (002 section 3.2): which columns of a tree are the update key, or why there are none.

Rules:
- Filters drop rows. A map keeps the key as it is, under any name; GROUP BY contains it; the inputs of a union have the
  same one; a join equates those of all inputs, and an as-of join has that of its first input.
- Results of a window aggregate are told apart by all columns of GROUP BY, over plain streams too.
- What has no meaning where each row replaces the one before is refused with the reason. With an append queue, where all
  rows count, a query may have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from millrace.kernel.columns.expressions import Call, Cast, Column, Expression
from millrace.kernel.progress.time_contract import ASIDE
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Numbered, Project, Scan, Union, scans_of
from millrace.plan.nodes.table_nodes import TableJoin
from millrace.plan.updates.refusals import APPEND, NoUpdateSemantics, not_yet, refusal

Names = frozenset[str]


@dataclass(frozen=True)
class ResultKey:
    """The columns that tell rows apart which do not update each other, each as all names that hold it.

    `update` is the update key of the streams, `further` are the other columns of GROUP BY.
    """

    update: tuple[Names, ...]
    further: tuple[Names, ...] = ()

    @property
    def columns(self) -> tuple[Names, ...]:
        """All of them."""
        return (*self.update, *self.further)


def is_update(scan: Scan) -> bool:
    """True if a scan gives rows of which later ones replace earlier ones; rows set aside replace nothing."""
    return scan.stream.update_key is not None and scan.outlet not in ASIDE


def reads_updates(node: Node) -> bool:
    """True if some stream that a tree reads is an update stream."""
    return any(is_update(each) for each in scans_of(node))


def key_names(root: Node) -> tuple[str, ...]:
    """The columns of a query's results that tell them apart; refuses a query without update semantics."""
    _refuse_mixture(root)
    found, names = whole_key(root), root.column_names()
    return tuple(first_of(each, names) for each in found.columns)


def whole_key(node: Node) -> ResultKey:
    """The key in a tree's rows; refuses a tree that has lost a column of it."""
    found = result_key(node)
    if not all(found.further):
        raise NoUpdateSemantics(
            "the results do not hold all columns of GROUP BY",
            hint="Each of them is an update of one group: add them to the SELECT list, as they are.",
            node=node,
        )
    return found


def first_of(held_by: Names, names: Sequence[str]) -> str:
    """The first of the names that hold a column."""
    return next(name for name in names if name in held_by)


def _refuse_mixture(root: Node) -> None:
    scans = scans_of(root)
    update = next((each for each in scans if is_update(each)), None)
    plain = next((each for each in scans if not is_update(each)), None)
    if plain is None or update is None:
        return
    name = plain.name
    in_vain = plain.outlet in ASIDE or any(isinstance(each, Following | RowsJoin) for each in walk(root))
    declare = "Let" if in_vain else f'Declare UPDATE KEY for "{name}" as well, or let'
    raise NoUpdateSemantics(
        f'"{update.stream.name}" is an update stream and "{name}" is not: the query would leave rows of "{name}" out, '
        "but all of them count",
        hint=f"{declare} the query {APPEND}.",
        node=plain,
    )


def result_key(node: Node) -> ResultKey:
    """The update key in a tree's rows; refuses a tree without update semantics."""
    match node:
        case Scan() if is_update(node):
            return ResultKey(tuple(frozenset((name,)) for name in node.stream.update_key or ()))
        case Filter() | Numbered():
            return result_key(node.input)
        case TableJoin() if node.matches_once:
            return result_key(node.input)
        case Project():
            return _mapped(node)
        case Union():
            return _united(node)
        case Aggregate():
            return _aggregated(node)
        case Join():
            return _joined(node)
        case Following(mode="recent"):
            return result_key(node.inputs[0])
    raise refusal(node)


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
    keys = [whole_key(each) for each in node.inputs]
    first, *others = [each.columns for each in keys]
    for other in others:
        matched = [next((each for each in other if each & names), None) for names in first]
        if None in matched or len(first) != len(other):
            raise NoUpdateSemantics(
                f"the inputs of the union have different update keys, ({_listed(first)}) and ({_listed(other)})",
                hint=f"Select the same key from each, under one name, or let the query {APPEND}.",
                node=node,
            )
        first = tuple(names & each for names, each in zip(first, matched, strict=True) if each is not None)
    count = len(keys[0].update)
    return ResultKey(first[:count], first[count:])


def _listed(key: Iterable[Names]) -> str:
    return ", ".join(min(each) for each in key)


# Windows


def _aggregated(node: Aggregate) -> ResultKey:
    if reads_updates(node) and getattr(node.window, "unit", "time") == "number":
        raise not_yet("a window over numbers", node, "Let the stream progress by a TIMESTAMP")
    given = result_key(node.input) if reads_updates(node) else ResultKey(())
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


# Joins


def _joined(node: Join) -> ResultKey:
    given = [whole_key(each) for each in node.inputs]
    rows, _ = key_equalities(node)
    places = [next(row for row in rows if row[0] in names) for names in given[0].columns]
    found = [
        frozenset(
            each
            for name, key in zip(row, given, strict=True)
            for names in key.columns
            if name in names
            for each in names
        )
        for row in places
    ]
    kept = next((place for place, side in enumerate(node.sides) if side.outer), None)
    if kept is not None:
        # Those of the other input may be null.
        own = frozenset(node.inputs[kept].column_names())
        found = [names & own for names in found]
    count = len(given[0].update)
    return ResultKey(tuple(found[:count]), tuple(found[count:]))


Equal = tuple[str, ...]
"""A column of each input of a join that are all equal."""


def key_equalities(node: Join) -> tuple[list[Equal], list[Equal]]:
    """The equalities of a join that equate the keys of its inputs, and those beside them."""
    _refuse_join(node)
    keys = [whole_key(each).columns for each in node.inputs]
    equal = list(zip(*(side.keys for side in node.sides), strict=True))
    chosen: list[Equal] = []
    for names in keys[0]:
        row = next((each for each in equal if each[0] in names and _are_keys(each, keys)), None)
        if row is None:
            raise _not_equated(node, keys)
        chosen.append(row)
    for place, key in enumerate(keys):
        if sorted(number for row in chosen for number, names in enumerate(key) if row[place] in names) != [
            *range(len(key))
        ]:
            raise _not_equated(node, keys)
    return chosen, [each for each in equal if each not in chosen]


def _are_keys(row: Equal, keys: Sequence[Sequence[Names]]) -> bool:
    return all(any(name in names for names in key) for name, key in zip(row, keys, strict=True))


def _refuse_join(node: Join) -> None:
    if sum(side.outer for side in node.sides) > 1:
        raise not_yet("FULL JOIN", node, "Write LEFT JOIN")
    if any(side.until is not None for side in node.sides):
        raise not_yet("an outer join with a limit of time in a column", node, "Write JOIN")
    if node.time != "max" or node.joint:
        raise not_yet("a window over a join by another time than the later one", node, "Leave out WA")


def _not_equated(node: Join, keys: Sequence[Sequence[Names]]) -> NoUpdateSemantics:
    first = keys[0]
    other = next((each for each in keys[1:] if len(each) != len(first)), keys[-1])
    written = " AND ".join(" = ".join(min(each) for each in row) for row in zip(*keys, strict=False))
    same = len(first) == len(other)
    hint = f"Join on the whole key of all, ON {written}" if same else "Join streams with the same update key"
    return NoUpdateSemantics(
        f"the join does not equate the update keys of its inputs, ({_listed(first)}) and ({_listed(other)})",
        hint=f"{hint}, or let the query {APPEND}.",
        node=node,
    )
