"""Which window a select aggregates over, in whatever way it was written, and whether it may."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from millrace.errors import NotYet, Place, QueryError
from millrace.language.calls import called_name
from millrace.language.intervals import interval_of_words
from millrace.language.places import Source
from millrace.language.scopes import Relation
from millrace.language.statements import FromItem, Length, Name, Select, WindowClause
from millrace.plan.nodes import WINDOW_END, WINDOW_START, Window

_SPARK_HINT = "Write GROUP BY window(ts, '1 minute'), or window(ts, '5 minutes', '1 minute') with a slide."


@dataclass(frozen=True)
class Windows:
    """The windows written in one select."""

    select: Select
    source: Source

    def all(self) -> list[WindowClause]:
        """Every window, wherever it stands."""
        after_from = [self.select.source.window] if self.select.source.window else []
        calls = [each for each in self.select.groups if is_window_call(each)]
        return [*after_from, *self.select.windows, *(spark_window(each, self.source) for each in calls)]

    def bound(self, relation: Relation, place: Place) -> Window:
        """The one window of an aggregate; refuses an aggregate without one."""
        clauses = self.all()
        if not clauses:
            raise unbounded(self.select.source, relation, place)
        windows = {_window(clause, relation) for clause in clauses}
        if len(windows) > 1:
            raise NotYet(
                "a select with different windows has no engine part yet",
                hint="Write one query for each window.",
                place=clauses[1].place,
            )
        return windows.pop()


def _window(clause: WindowClause, relation: Relation) -> Window:
    if clause.slide is None:
        raise NotYet(
            "a window without SLIDE, with a result for each row, has no engine part yet",
            hint="Add a slide: [RANGE 5 MINUTES SLIDE 1 MINUTE].",
            place=clause.place,
        )
    for length, what in ((clause.range, "RANGE"), (clause.slide, "SLIDE")):
        if length.micros <= 0:
            raise QueryError(f"{what} is not positive", hint="Write a length such as 1 MINUTE.", place=length.place)
    if clause.attribute is not None:
        _check_attribute(clause.attribute, relation)
    return Window(clause.range.micros, clause.slide.micros)


def _check_attribute(attribute: Name, relation: Relation) -> None:
    """WA names the time column of every input."""
    found = relation.scope.find(attribute.text)
    if found in relation.times:
        return
    if found is None and attribute.text.lower() in {each.lower() for each in relation.hidden_times}:
        return
    if found is None:
        raise relation.scope.unknown(attribute.text, attribute.place)
    owner = relation.untimed.get(found, relation.label)
    raise QueryError(
        f'column "{found}" is not the time column of "{owner}"',
        hint=f"Write WA {sorted(relation.times)[0]}."
        if relation.times
        else "Leave WA out: the rows' own time is used.",
        place=attribute.place,
    )


def unbounded(item: FromItem, relation: Relation, place: Place) -> QueryError:
    """The refusal of an aggregate without a window, with the window that would bound it."""
    time = f" WA {sorted(relation.times)[0]}" if relation.times else ""
    label = relation.label if all(isinstance(each, Name) for each in item.sources) else "(...)"
    return QueryError(
        "an aggregate without a window never ends on an unbounded stream",
        hint=f"Bound it with a window: FROM {label} [RANGE 1 MINUTE SLIDE 1 MINUTE{time}].",
        place=place,
    )


def refuse_window_without_aggregate(windows: Windows) -> None:
    """A window says over what to aggregate, and nothing else."""
    for clause in windows.all():
        raise QueryError(
            "a window stands in a query without an aggregate",
            hint="Remove the window, or aggregate over it, for example with count(*).",
            place=clause.place,
        )


# window(ts, '1 minute', '30 seconds') as in Spark


def is_window_call(node: exp.Expr) -> bool:
    """Whether a node is Spark's `window(...)`."""
    return called_name(node) == "window"


def spark_window(node: exp.Expr, source: Source) -> WindowClause:
    """The window of `window(ts, size[, slide])`."""
    place = source.of_node(node)
    arguments = node.expressions
    if not 2 <= len(arguments) <= 3 or not isinstance(arguments[0], exp.Column):
        raise QueryError('"window" takes the time column, a length and a slide', hint=_SPARK_HINT, place=place)
    attribute = Name(arguments[0].name, source.of_node(arguments[0]))
    lengths = [_length(each, source.of_node(each)) for each in arguments[1:]]
    return WindowClause(place, lengths[0], lengths[-1], attribute)


def _length(node: exp.Expr, place: Place) -> Length:
    if isinstance(node, exp.Interval):
        return Length(int(node.this.name), place)
    if isinstance(node, exp.Literal) and node.is_string:
        return Length(interval_of_words(node.name, place), place)
    raise QueryError("a length of time is expected", hint=_SPARK_HINT, place=place)


_BOUNDS = {
    "window_start": WINDOW_START,
    "window_end": WINDOW_END,
    "window.start": WINDOW_START,
    "window.end": WINDOW_END,
}


def window_column(node: exp.Expr) -> str | None:
    """`window_start` or `window_end` when a node names a bound of the window."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    if not node.table:
        return _BOUNDS.get(node.name.lower())
    return _BOUNDS.get(f"{node.table}.{node.name}".lower()) if len(node.parts) == 2 else None
