"""The time contract of a stream: its clauses about time, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.progress.time_contract import EtsKind, TimeContract
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.grammar.statements import (
    ColumnsClause,
    EtsClause,
    Length,
    Name,
    NumberOfRows,
    StreamStatement,
    TimeClause,
    Watermark,
)
from millrace.language.grammar.text.lengths import length_of, measured
from millrace.language.grammar.text.places import place_of
from millrace.plan.explain.time_text import interval_text

_CHOICES = (
    "Say what its time is: TIMESTAMP BY column ORDERED, TIMESTAMP BY column DISORDER INTERVAL 5 SECONDS, "
    "INTERNAL TIMESTAMP AS column, or LATENT TIMESTAMP."
)


@dataclass(frozen=True)
class Attributes:
    """The columns of a contract, looked up: the time, its partitions and groups, further times."""

    time: str | None
    partitions: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    kind: pa.DataType = TIMESTAMP
    """The type of the time."""

    @property
    def unit(self) -> Literal["time", "number"]:
        """What lengths are counted in: a BIGINT has no unit."""
        return "number" if self.kind == pa.int64() else "time"


def time_clause(statement: StreamStatement) -> TimeClause:
    """The clause that says what the stream's time is; further ones of the column list are `also` times."""
    clauses = [*([statement.time] if statement.time else []), *(_of_watermark(each) for each in statement.watermarks)]
    if not clauses:
        raise QueryError(f'stream "{statement.name.text}" has no time', hint=_CHOICES, place=statement.name.place)
    first, further = clauses[0], clauses[1:]
    if further and first.kind != "external":
        raise QueryError(f'stream "{statement.name.text}" has two times', hint="Keep one of them.", place=first.place)
    return replace(first, also=(*first.also, *further))


def _of_watermark(watermark: Watermark) -> TimeClause:
    """`WATERMARK FOR ts AS ts - INTERVAL i` is `TIMESTAMP BY ts DISORDER INTERVAL i`."""
    node = watermark.expression
    if _names(node, watermark.column):
        return TimeClause("external", watermark.column, place=watermark.place)
    if isinstance(node, exp.Sub) and _names(node.this, watermark.column):
        disorder = _trail(node.expression, watermark)
        if disorder is not None:
            return TimeClause("external", watermark.column, disorder, place=watermark.place)
    name = watermark.column.text
    raise QueryError(
        "a watermark must be the time column minus an interval",
        hint=f"Write WATERMARK FOR {name} AS {name} - INTERVAL 5 SECONDS.",
        place=watermark.place,
    )


def _trail(node: exp.Expr, watermark: Watermark) -> Length | NumberOfRows | None:
    """How far a watermark trails its column: an interval, or a number without a unit."""
    if isinstance(node, exp.Interval):
        return length_of(node, watermark.place)
    whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    return NumberOfRows(int(node.name), place=watermark.place) if whole else None


def _names(node: exp.Expr, column: Name) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() == column.text.lower()


def bind_contract(
    statement: StreamStatement,
    time: TimeClause,
    attributes: Attributes,
    binder: ExpressionBinder,
) -> TimeContract:
    """The contract of a stream whose columns have been looked up."""
    if time.kind != "external":
        _refuse_external_clauses(statement)
        if time.kind == "latent":
            _refuse_ets_of_latent(statement.ets)
            return TimeContract("latent", ets="on_demand")
        # Internal times are the system's clock, so that the bound of a silent stream can always advance.
        return _with_ets(
            TimeContract(time.kind, attributes.time), statement.ets or EtsClause("on_demand", place=time.place)
        )
    if attributes.unit == "number":
        _refuse_clock(statement, attributes)
    contract = TimeContract(
        "external",
        attributes.time,
        _disorder(time, attributes),
        rows=None if time.rows is None else _count(time.rows),
        punctuation=None if time.punctuated_by is None else _promise(time.punctuated_by, binder, attributes.kind),
        partitions=attributes.partitions,
        max_future_skew=_not_negative(statement.max_future_skew, "MAX FUTURE SKEW", "Write a positive interval."),
        per=attributes.per,
        also=tuple((name, _disorder(each, attributes)) for name, each in zip(attributes.also, time.also, strict=True)),
        unit=attributes.unit,
    )
    _check_partitions(statement, time, contract)
    if statement.late_by_window is not None:
        _refuse_late_by_window(statement.late_by_window, statement, contract)
        contract = replace(contract, late_by_window=True)
    if statement.ets is None or statement.ets.kind == "none":
        return contract
    _check_external_ets(statement.ets, contract.disorder)
    return _with_ets(contract, statement.ets)


def _refuse_late_by_window(clause: Name, statement: StreamStatement, contract: TimeContract) -> None:
    """Refuse it beside clauses by which a row is late for other reasons than the stream's bound."""
    for found, other in ((contract.per, "PER"), (contract.also, "ALSO BY"), (statement.update_key, "UPDATE KEY")):
        if found:
            raise QueryError(
                f"LATE BY WINDOW cannot be combined with {other}",
                hint=f"Leave one of them out: with {other} there is no one bound that closes all windows.",
                place=clause.place,
            )


# Order


def _disorder(time: TimeClause, attributes: Attributes) -> int:
    if time.disorder is None:
        return 0
    length = measured(time.disorder, attributes.unit, "DISORDER")
    if length < 0:
        raise QueryError(
            "DISORDER is negative", hint="Write ORDERED, or a positive interval.", place=time.disorder.place
        )
    return length


def _not_negative(length: Length | None, what: str, hint: str) -> int | None:
    if length is not None and length.micros < 0:
        raise QueryError(f"{what} is negative", hint=hint, place=length.place)
    return None if length is None else length.micros


def _count(rows: Name) -> int:
    if not rows.text.isdigit():
        raise QueryError("DISORDER ... ROWS takes a whole number", hint="Write DISORDER 100 ROWS.", place=rows.place)
    return int(rows.text)


def _promise(node: exp.Expr, binder: ExpressionBinder, time: pa.DataType) -> Expression:
    """The punctuation in a row: a time below which no row follows, or a condition that makes the row's own time one."""
    bound = binder.bind(node)
    if bound.type not in (time, pa.bool_()):
        raise QueryError(
            f"PUNCTUATED BY takes a {sql_name(time)} or a condition, not {sql_name(bound.type)}",
            hint="Write a column with a time below which no row will follow, or a condition that marks rows as such.",
            place=place_of(node),
        )
    return bound.expression


def _check_partitions(statement: StreamStatement, time: TimeClause, contract: TimeContract) -> None:
    if contract.partitions and contract.per:
        raise QueryError(
            "PER and PARTITIONED BY cannot be combined",
            hint="PER promises for each group by itself; leave PARTITIONED BY out.",
            place=time.per[0].place,
        )
    if contract.partitions and contract.rows is not None:
        assert statement.partitioned is not None
        raise QueryError(
            "PARTITIONED BY and DISORDER ... ROWS cannot be combined",
            hint="Say what holds in each partition with ORDERED, DISORDER INTERVAL or PUNCTUATED BY.",
            place=statement.partitioned.place,
        )


def _refuse_external_clauses(statement: StreamStatement) -> None:
    """Refuse clauses that are for external timestamps."""
    ets = statement.ets
    clauses: tuple[tuple[str, ColumnsClause | Length | Name | None], ...] = (
        ("PARTITIONED BY", statement.partitioned),
        ("MAX FUTURE SKEW", statement.max_future_skew),
        ("LATE BY WINDOW", statement.late_by_window),
        ("SKEW", None if ets is None else ets.skew),
        ("LULL", None if ets is None else ets.lull),
    )
    for name, clause in clauses:
        if clause is not None:
            raise QueryError(
                f"{name} is for external timestamps",
                hint=f"Leave {name} out: the timestamps of this stream come from the system clock.",
                place=clause.place,
            )


def _refuse_clock(statement: StreamStatement, attributes: Attributes) -> None:
    """Refuse what compares the time with the clock, for a number has no unit."""
    ets = None if statement.ets is None or statement.ets.kind == "none" else statement.ets
    for name, clause in (("ETS", ets), ("MAX FUTURE SKEW", statement.max_future_skew)):
        if clause is not None:
            raise QueryError(
                f'{name} goes by the clock, and "{attributes.time}" is a BIGINT, which has no unit',
                hint=f'Leave {name} out, or declare "{attributes.time}" as TIMESTAMP. A silent stream then waits: its '
                "own rows or PUNCTUATED BY advance it.",
                place=clause.place,
            )


def _refuse_ets_of_latent(ets: EtsClause | None) -> None:
    if ets is not None and ets.kind != "none":
        raise QueryError(
            "latent timestamps need no ETS",
            hint="Leave ETS out: operators that need a time stamp the rows themselves, and wait for none.",
            place=ets.place,
        )


# Enabling timestamps


_ETS_KINDS: dict[str, EtsKind] = {"every": "periodic", "on_demand": "on_demand", "none": "none"}


def _with_ets(contract: TimeContract, clause: EtsClause) -> TimeContract:
    if clause.every is not None and clause.every.micros <= 0:
        raise QueryError(
            "ETS EVERY takes a positive interval", hint="Write ETS EVERY 1 SECOND.", place=clause.every.place
        )
    return replace(
        contract,
        ets=_ETS_KINDS[clause.kind],
        every=None if clause.every is None else clause.every.micros,
        skew=None if clause.skew is None else clause.skew.micros,
        lull=None if clause.lull is None else clause.lull.micros,
    )


def _check_external_ets(clause: EtsClause, disorder: int) -> None:
    """Refuse enabling timestamps for an external stream without a rule that leaves room for its disorder."""
    if clause.skew is None and clause.lull is None:
        what = "ETS ON DEMAND" if clause.every is None else "ETS EVERY"
        raise QueryError(
            f"{what} needs a SKEW or a LULL for external timestamps",
            hint=f"Add SKEW INTERVAL {interval_text(disorder or 1_000_000)}, how far a row may lag behind the pace of "
            "the clock, or LULL INTERVAL 1 MINUTE, how far it may lag behind the clock itself.",
            place=clause.place,
        )
    for name, length in (("SKEW", clause.skew), ("LULL", clause.lull)):
        if length is not None and length.micros < disorder:
            raise QueryError(
                f"{name} is less than DISORDER, which is {interval_text(disorder)}",
                hint=f"Write at least {name} INTERVAL {interval_text(disorder)}, or rows within the disorder are late.",
                place=length.place,
            )
