"""The windows of a select in all spellings, checked and applied to the rows that it reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from millrace.errors import NotYet, Place, QueryError, UnboundedState
from millrace.kernel.columns.expressions import Column
from millrace.language.expressions.bound_relation import BoundRelation, JoinedTimes
from millrace.language.expressions.calls import called_name
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.statements import FromItem, Length, MonthLength, Name, NumberOfRows, Select, WindowClause
from millrace.language.grammar.text.intervals import interval_of_words
from millrace.language.grammar.text.lengths import length_of
from millrace.language.grammar.text.places import place_of
from millrace.language.windows.clock_clauses import clock_window, is_by_clock, refuse_clock
from millrace.language.windows.extents import extent
from millrace.language.windows.outlets import numbered, progressing_by
from millrace.plan.nodes.aggregate_nodes import (
    WINDOW_END,
    WINDOW_START,
    AnyWindow,
    BorrowedSessionWindow,
    PartitionedRows,
    SessionWindow,
    TrailingWindow,
    Unit,
    Window,
)

_SPARK_HINT = "Write GROUP BY window(ts, '1 minute'), or window(ts, '5 minutes', '1 minute') with a slide."
_SESSION_HINT = "Write GROUP BY session_window(ts, '5 minutes')."


@dataclass(frozen=True)
class Windows:
    """The windows written in one select; `limited` is true if its query has a limit of state."""

    select: Select
    limited: bool = False

    def all(self) -> list[WindowClause]:
        """Every window of the select itself, wherever it stands; those of a join's inputs are not for aggregates."""
        source = self.select.source.window
        after_from = [source] if source and not self.select.joins else []
        calls = [each for each in self.select.groups if is_window_call(each)]
        return [*after_from, *self.select.windows, *(spark_window(each) for each in calls)]

    def partition(self) -> tuple[Name, ...]:
        """The columns of PARTITION BY in a ROWS window."""
        return next((each.partition for each in self.all() if each.kind == "rows"), ())

    def laid(self, relation: BoundRelation) -> tuple[AnyWindow, BoundRelation] | None:
        """The one window, and the rows under the attribute that it is over; None where none is written."""
        clauses = self.all() or ([self.select.window] if self.select.window else [])
        if not clauses:
            return None
        over = [_over(each, relation) for each in clauses]
        windows = [_window(each, one.unit, self.limited) for each, one in zip(clauses, over, strict=True)]
        if any((window, each.node) != (windows[0], over[0].node) for window, each in zip(windows, over, strict=True)):
            raise NotYet(
                "a select with different windows is not supported yet",
                hint="Write one query for each window.",
                place=clauses[1].place,
            )
        return windows[0], over[0]


# What a window means


def _window(clause: WindowClause, unit: Unit, limited: bool) -> AnyWindow:
    if clause.kind == "unlimited":
        return _unlimited(clause, unit, limited)
    if clause.partition and clause.kind == "range":
        raise QueryError(
            "PARTITION BY is only allowed with ROWS",
            hint="A time window is the same for all groups: write GROUP BY.",
            place=clause.place,
        )
    if clause.kind == "session":
        refuse_clock(clause)
        _refuse_slide(clause, "A session ends when nothing comes for a while: leave SLIDE out.")
        gap = extent(clause.size, "SESSION", unit)
        return BorrowedSessionWindow(gap, unit) if clause.borrowed else SessionWindow(gap, unit)
    if clause.kind == "range" and is_by_clock(clause):
        return clock_window(clause, unit)
    refuse_clock(clause)
    size = extent(clause.size, clause.kind.upper(), unit)
    slide = None if clause.slide is None else extent(_slide(clause), "SLIDE", unit)
    if clause.kind == "range":
        return TrailingWindow(size, unit) if slide is None else Window(size, slide, unit=unit)
    if clause.partition:
        return PartitionedRows(size, slide)
    return TrailingWindow(size - 1, "rows") if slide is None else Window(size, slide, unit="rows")


def _unlimited(clause: WindowClause, unit: Unit, limited: bool) -> TrailingWindow:
    refuse_clock(clause)
    _refuse_slide(clause, "It gives a result for each row: leave SLIDE out.")
    if clause.partition:
        raise QueryError(
            "PARTITION BY is only allowed with ROWS", hint="Write GROUP BY with the same columns.", place=clause.place
        )
    if not limited:
        raise UnboundedState(
            "a window without an end keeps its groups for ever",
            hint="Say how many groups there are at most: WITH (state_limit = 100000).",
            place=clause.place,
        )
    return TrailingWindow(None, unit)


def _refuse_slide(clause: WindowClause, hint: str) -> None:
    if clause.slide is not None:
        raise QueryError(f"SLIDE cannot be combined with {clause.kind.upper()}", hint=hint, place=clause.slide.place)


def _slide(clause: WindowClause) -> Length | MonthLength | NumberOfRows | None:
    """The slide, in the unit of the window."""
    if type(clause.slide) is type(clause.size):
        return clause.slide
    assert clause.slide is not None
    wanted = "a number of rows" if clause.kind == "rows" else "a length of time"
    example = "[ROWS 100 SLIDE 10]" if clause.kind == "rows" else "[RANGE 5 MINUTES SLIDE 1 MINUTE]"
    raise QueryError(
        f"the SLIDE of a {clause.kind.upper()} window is {wanted}", hint=f"Write {example}.", place=clause.slide.place
    )


# What it is over


def _over(clause: WindowClause, relation: BoundRelation) -> BoundRelation:
    """The rows, with the attribute that the window is over as their own time."""
    if clause.kind == "rows":
        return _counted(clause, relation)
    if relation.unit == "rows":
        raise QueryError(
            "a time window needs rows that have a time",
            hint="The results of a ROWS window have no time; group by its window_start and window_end.",
            place=clause.place,
        )
    return relation if clause.attribute is None else by_attribute(clause, relation)


def _counted(clause: WindowClause, relation: BoundRelation) -> BoundRelation:
    if clause.attribute is not None:
        raise QueryError(
            "WA cannot be combined with ROWS",
            hint="Rows are counted as they enter; leave WA out.",
            place=clause.attribute.place,
        )
    node = numbered(relation.node)
    if node is None:
        raise QueryError(
            "a ROWS window cannot count the rows of this input",
            hint="ROWS windows are over streams and unions of streams; over results use [RANGE ...].",
            place=clause.place,
        )
    return replace(relation, node=node, times={}, instants=frozenset(), hidden_times=frozenset(), unit="rows")


def by_attribute(clause: WindowClause, relation: BoundRelation) -> BoundRelation:
    """The rows by a time column: their own time, another that rows of a join may have, or a further declared one."""
    attribute = clause.attribute
    assert attribute is not None
    written = exp.column(attribute.text, table=clause.qualifier.text if clause.qualifier else None)
    scope = relation.scope
    found = scope.meant(written)
    if found is not None or clause.qualifier is not None:
        scope.column(written, attribute.place)
    if found in relation.times or (found is None and _is_hidden_time(attribute, relation)):
        return relation
    time = None if found is None or relation.choices is None else relation.choices.choice(Column(found))
    if time is not None:
        return relation.by_time(time)
    node = progressing_by(relation.node, found or attribute.text)
    if node is not None:
        return replace(relation, node=node, times={} if found is None else {found: 0}, instants=frozenset())
    if found is None:
        raise scope.unknown(attribute.text, attribute.place)
    raise _no_time(found, attribute, relation)


def _is_hidden_time(attribute: Name, relation: BoundRelation) -> bool:
    """True if a time column is meant that is not selected; `window_time` is Flink's word for a result's own time."""
    names = {each.lower() for each in relation.hidden_times}
    of_results = bool({WINDOW_START, WINDOW_END} & {*names, *relation.times})
    return attribute.text.lower() in names or (of_results and attribute.text.lower() == "window_time")


def _no_time(found: str, attribute: Name, relation: BoundRelation) -> QueryError:
    if relation.choices is not None:
        return _no_choice(found, attribute, relation.choices)
    owner = relation.untimed.get(found, relation.label)
    further = f'or declare it with ALSO BY {found} in CREATE STREAM "{owner}".'
    hint = f"Write WA {sorted(relation.times)[0]}, {further}" if relation.times else "Leave WA out, " + further
    return QueryError(f'column "{found}" is not the time column of "{owner}"', hint=hint, place=attribute.place)


def _no_choice(found: str, attribute: Name, choices: JoinedTimes) -> QueryError:
    names = choices.names()
    hint = f"Write WA {names[0]}, or leave WA" if names else "Leave WA"
    return QueryError(
        f'"{found}" cannot be the time of the rows of this join',
        hint=f"{hint} out: then they have the latest of their times.",
        place=attribute.place,
    )


# Refusals


def unbounded(item: FromItem, relation: BoundRelation, place: Place | None) -> QueryError:
    """The refusal of an aggregate without a window, with the window that would bound it."""
    if relation.joined is not None:
        return _unbounded_join(relation, place)
    label = relation.label if all(isinstance(each, Name) for each in item.sources) else "(...)"
    times = sorted({*relation.times, *relation.instants}, reverse=True)
    dropped = ", ".join(sorted({WINDOW_START, WINDOW_END} & relation.hidden_times, reverse=True))
    if dropped and not times:
        hint = f"Select {dropped} in the query that is read, and group by {'them' if ',' in dropped else 'it'}"
        hint += "." if relation.unit == "rows" else f"; or bound it: FROM {label} [RANGE 1 HOUR SLIDE 1 HOUR]."
    elif relation.unit == "rows" and not times:
        hint = "Results of a window with PARTITION BY have no common time: write them to a sink."
    elif relation.unit == "rows":
        hint = f"Group by the inner window: GROUP BY {', '.join(times)}."
    elif WINDOW_START in times or WINDOW_END in times:
        hint = f"Group by {', '.join(times)}, or bound it with a window: FROM {label} [RANGE 1 HOUR SLIDE 1 HOUR]."
    else:
        time = f" WA {times[0]}" if times else ""
        length = "1 MINUTE" if relation.unit == "time" else "10"
        hint = f"Bound it with a window: FROM {label} [RANGE {length} SLIDE {length}{time}]."
        if relation.unit == "number" and times:
            hint += f" Or group by {times[0]} div 10; / gives a fraction."
    return QueryError("an aggregate without a window never ends on an unbounded stream", hint=hint, place=place)


def _unbounded_join(relation: BoundRelation, place: Place | None) -> QueryError:
    names = relation.choices.names() if relation.choices else []
    by = f" WA {names[0]}" if names else ""
    group = f", or group by {names[0]} or a function of it such as date_trunc" if names else ""
    return QueryError(
        "an aggregate without a window never ends on a join of unbounded streams",
        hint=f"Put a window after it, count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE{by}]{group}.",
        place=place,
    )


# window(ts, '1 minute', '30 seconds') and session_window(ts, '5 minutes') as in Spark


def is_window_call(node: exp.Expr) -> bool:
    """True if a node is Spark's `window(...)` or `session_window(...)`."""
    return called_name(node) in ("window", "session_window")


def spark_window(node: exp.Expr) -> WindowClause:
    """The window of `window(ts, size[, slide[, offset]])` or `session_window(ts, gap)`."""
    place = place_of(node)
    arguments = node.expressions
    session = called_name(node) == "session_window"
    wanted, hint = (2, _SESSION_HINT) if session else (4, _SPARK_HINT)
    if not 2 <= len(arguments) <= wanted or not isinstance(arguments[0], exp.Column):
        what = "a gap" if session else "a length, a slide and an offset"
        raise QueryError(f'"{called_name(node)}" takes the time column, {what}', hint=hint, place=place)
    written = arguments[0]
    attribute = Name(written.name, place=place_of(written))
    qualifier = Name(written.table, place=place_of(written)) if written.table else None
    lengths = [_length(each, place_of(each), hint) for each in arguments[1:]]
    if session:
        return WindowClause("session", lengths[0], None, attribute, qualifier=qualifier, borrowed=True, place=place)
    slide, offset = (*lengths[1:], None, None)[:2]
    return WindowClause(
        "range", lengths[0], slide or lengths[0], attribute, qualifier=qualifier, offset=offset, place=place
    )


def _length(node: exp.Expr, place: Place | None, hint: str) -> Length:
    if isinstance(node, exp.Interval):
        return length_of(node, place)
    if isinstance(node, exp.Literal) and node.is_string:
        return Length(interval_of_words(node.name, place), place=place)
    raise QueryError("expected a length of time", hint=hint, place=place)


# window_start, window_end, window.start, window


_BOUNDS = {
    **dict.fromkeys(("window_start", "window.start", "session_window.start"), WINDOW_START),
    **dict.fromkeys(("window_end", "window.end", "session_window.end"), WINDOW_END),
}


def window_column(node: exp.Expr, scope: Scope) -> str | None:
    """`window_start` or `window_end` when a node names a bound of a window, also behind the name of the input."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or len(node.parts) > 2:
        return None
    qualified = f"{node.table}.{node.name}".lower() if node.table else node.name.lower()
    if node.table and scope.qualifier is not None and node.table.lower() == scope.qualifier.lower():
        return _BOUNDS.get(node.name.lower()) if scope.find(node.name) is None else None
    return _BOUNDS.get(qualified)


def is_window_struct(node: exp.Expr, scope: Scope) -> bool:
    """True for `window` alone, as Spark names both bounds at once."""
    if is_window_call(node):
        return True
    plain = isinstance(node, exp.Column) and not node.table and scope.find(node.name) is None
    return plain and node.name.lower() in ("window", "session_window")
