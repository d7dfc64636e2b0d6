"""Joins and sequences in words: what matches, how long rows are kept, which time a result has, and how it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millrace.kernel.columns.expressions import Call
from millrace.kernel.joins.sides import RowsSide, Side
from millrace.plan.explain.time_text import interval_text
from millrace.plan.nodes.aggregate_nodes import Unit
from millrace.plan.nodes.join_nodes import AnyJoin, Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Project, Scan, below_maps, scans_of
from millrace.plan.nodes.table_nodes import TableJoin

_TABLE_JOINS = {"inner": "join", "left": "left join", "semi": "only rows in", "anti": "only rows not in"}
_SHORT = 60
"""How long what is computed may be to be shown in the place of its name."""


def join_label(join: Join) -> str:
    """What matches: equal keys, and for two inputs the band of their times."""
    names = names_of(join.inputs)
    words = f"join {_listed(names)}{_on(join)}"
    if len(join.sides) == 2 and (band := band_text(names, join.sides, unit_of(join))):
        words += f", {band}"
    kept = [name for name, side in zip(names, join.sides, strict=True) if side.outer]
    return words + (f", with all rows of {_listed(kept)}" if kept else "")


def table_join_label(join: TableJoin) -> str:
    """What of a table a row meets."""
    table = join.table
    keys = " and ".join(f"{value} = {table.name}.{column}" for value, column in join.keys)
    further = "" if isinstance(join.condition, Call) and join.condition.function == "=" else f", where {join.condition}"
    rows = "" if join.where is None else f", of its rows where {join.where}"
    every = "" if table.refresh is None else f", read again every {interval_text(table.refresh)}"
    return f"{_TABLE_JOINS[join.kind]} table {table.name} on {keys}{further}{rows}{every}: a row leaves at once"


def join_notes(join: Join) -> Iterator[str]:
    """How a join works, one line each."""
    names = names_of(join.inputs)
    each_side = zip(names, join.inputs, join.sides, strict=True)
    yield "; ".join(f"{name} is kept until the bound passes {_end(node, side)}" for name, node, side in each_side)
    if join.residual is not None:
        yield f"only where {join.residual}"
    if join.joint:
        yield "punctuation: joint, for pairs of times, beside that of the later time"
    elif join.time != "max":
        which = "the earliest time of its parts" if join.time == "min" else f"the time of {names[join.time]}"
        yield f"a result has {which}"
    if (why := reason(join)) is not None:
        yield why


def reason(join: Join) -> str | None:
    """Why a join is made as it is: one of several inputs, or one of a pipeline; None for a join of two streams.

    >>> import pyarrow as pa
    >>> from millrace.kernel.progress.time_contract import TimeContract
    >>> from millrace.plan.nodes.endpoints import Connector, Stream
    >>> scan = Scan(Stream("s", pa.schema([("x.k", pa.int64())]), TimeContract("latent"), Connector("csv")))
    >>> reason(Join((scan, scan, scan), (Side(ahead=1), Side(ahead=1), Side(ahead=1))))
    'one multi-way join: all inputs are within constant limits of each other, without keys'
    """
    if len(join.inputs) > 2:
        keyed = "and joined on the same keys" if join.sides[0].keys else "without keys"
        return f"one multi-way join: all inputs are within constant limits of each other, {keyed}"
    below = [below_maps(each) for each in join.inputs]
    if not any(isinstance(each, Join) for each in below):
        return "a join of two inputs" if any(isinstance(each, AnyJoin) for each in below) else None
    if any(side.outer for side in join.sides):
        return "a pipeline of joins of two, as it is written: outer joins keep their order"
    return "a pipeline of joins of two: not all inputs are joined on the same keys within constant limits"


def rows_join_label(join: RowsJoin) -> str:
    """What matches, and the window that each side keeps."""
    names = names_of(join.inputs)
    windows = [_window_text(name, side, unit_of(join)) for name, side in zip(names, join.sides, strict=True)]
    where = "" if join.residual is None else f", only where {join.residual}"
    return f"join by rows {_listed(names)}{_on(join)}: {'; '.join(windows)}{where}"


def following_label(node: Following) -> str:
    """Which row each row is given with."""
    answered, looked_up = names_of(node.inputs)
    equal = _equal(node.inputs, node.keys)
    where = "before it" if node.strict else "not after it"
    within = "" if node.within is None else f", at most {interval_text(node.within, unit_of(node))} older"
    found = (
        f"the latest row of {looked_up} {where}"
        if node.mode == "recent"
        else f"the earliest row of {looked_up} {where} that no other has used"
    )
    kind = "as-of join" if node.mode == "recent" else "chronicle"
    kept = ", or with nulls" if node.outer else ""
    return f"{kind}: each row of {answered} with {found}{f' of equal {equal}' if equal else ''}{within}{kept}"


# Names


def names_of(inputs: Sequence[Node]) -> list[str]:
    """What the inputs of a join are called; one that is itself a join by all its parts."""
    return [_name_of(each) or f"input {place}" for place, each in enumerate(inputs, 1)]


def _name_of(node: Node) -> str:
    """The first part of the columns' names; if no column is read, the name of the stream."""
    below = below_maps(node)
    if isinstance(below, AnyJoin):
        return " + ".join(names_of(below.inputs))
    qualifiers = {each.split(".", 1)[0] for each in node.schema.names if "." in each}
    return min(qualifiers, default=below.stream.name if isinstance(below, Scan) else "")


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _on(join: Join | RowsJoin) -> str:
    equal = _equal(join.inputs, [side.keys for side in join.sides])
    return f" on {equal}" if equal else ""


def _equal(inputs: Sequence[Node], keys: Sequence[Sequence[str]]) -> str:
    shown = [[_column(node, name) for name in names] for node, names in zip(inputs, keys, strict=True)]
    return " and ".join(" = ".join(each) for each in zip(*shown, strict=True))


def _column(node: Node, name: str) -> str:
    """A column by its name; a column that was computed for the join alone by its expression, if that is short."""
    computed = str(dict(node.columns).get(name, "")) if isinstance(node, Project) and "__" in name else ""
    return computed if computed and len(computed) <= _SHORT else name


# Times


def unit_of(node: Node) -> Unit:
    """What lengths of time of a node are counted in."""
    return next((scan.stream.time.unit for scan in scans_of(node)), "time")


def band_text(names: Sequence[str], sides: Sequence[Side], unit: Unit = "time") -> str:
    """From when to when rows of the second input match a row of the first; nothing where columns say it.

    >>> band_text(["x", "y"], [Side(ahead=180_000_000), Side(ahead=120_000_000)])
    'y from 2 MINUTES before x to 3 MINUTES after it'
    >>> band_text(["x", "y"], [Side(ahead=5_000_000), Side(ahead=-1_000_000)])
    'y from 1 SECOND after x to 5 SECONDS after it'
    """
    left, right = sides
    if left.ahead is None or right.ahead is None or left.until or right.until:
        return ""
    if left.ahead == right.ahead == 0:
        return f"{names[1]} at the time of {names[0]}"
    return f"{names[1]} from {_offset(-right.ahead, names[0], unit)} to {_offset(left.ahead, 'it', unit)}"


def _offset(length: int, what: str, unit: Unit) -> str:
    if length == 0:
        return "its time" if what == "it" else f"the time of {what}"
    return f"{interval_text(abs(length), unit)} {'after' if length > 0 else 'before'} {what}"


def _end(node: Node, side: Side) -> str:
    """Up to when a row of one side matches others."""
    reaches = [] if side.ahead is None else [_passed(side.ahead, unit_of(node))]
    reaches += [] if side.until is None else [_column(node, side.until)]
    return reaches[0] if len(reaches) == 1 else f"the earlier of {' and '.join(reaches)}"


def _passed(ahead: int, unit: Unit) -> str:
    return "its time" if ahead == 0 else f"its time {'+' if ahead > 0 else '-'} {interval_text(abs(ahead), unit)}"


def _window_text(name: str, side: RowsSide, unit: Unit) -> str:
    partition = f" of its {', '.join(side.partition)}" if side.partition else ""
    if side.rows is not None:
        return f"{name} keeps the last {'row' if side.rows == 1 else f'{side.rows} rows'}{partition}"
    if side.range is not None:
        return f"{name} keeps rows at most {interval_text(side.range, unit)} old"
    return f"{name} keeps none"
