"""Windows of a relation, between `.window()` and `.agg()`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from millrace.api.sql_text.join_text import with_window
from millrace.callers import at_caller
from millrace.errors import RequestError
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START

if TYPE_CHECKING:
    from millrace.api.relations import Relation


@at_caller
@dataclass(frozen=True)
class Windowed:
    """Rows in windows, to be aggregated by keys."""

    relation: Relation
    window: str
    keys: tuple[str, ...] = ()

    def group_by(self, *keys: str) -> Windowed:
        """The same windows, with one group per value of the keys."""
        return replace(self, keys=(*self.keys, *keys))

    def agg(self, **aggregates: str) -> Relation:
        """One row per window and group: the bounds of the window, the keys, the named aggregates."""
        base = self.relation
        is_join = base.timed is not None
        window = "" if is_join else f" {self.window}"
        computed = with_window(aggregates, self.window) if is_join else aggregates
        named = {WINDOW_START, WINDOW_END} & {*self.keys, *aggregates.values()}
        bounds = () if named else (WINDOW_START, WINDOW_END)
        items = ", ".join([*bounds, *self.keys, *(f"{text} AS {name}" for name, text in computed.items())])
        where = f" WHERE {base.predicate}" if base.predicate else ""
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        text = f"(SELECT {items} FROM {base.source}{window}{where}{group})"
        return replace(base, source=text, predicate="", joined=None, timed=None)._checked()

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse the methods of rows."""
        if not name.startswith("_") and hasattr(type(self.relation), name):
            raise no_rows()
        raise AttributeError(f"windows have no {name!r}", name=name, obj=self)


def no_rows() -> RequestError:
    """The error for windows that are used as rows."""
    return RequestError(
        "windows must be aggregated before their rows are used", hint="Aggregate them: .agg(n='count(*)')."
    )
