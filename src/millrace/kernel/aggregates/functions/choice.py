"""The value of one chosen row: first, last, max_by, min_by."""

from __future__ import annotations

from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, valid
from millrace.kernel.columns.grouping import Groups


class Choice(AggregateFunction):
    """The first argument where the second is least or greatest; among equals the least or greatest value, null least.

    Rows without a second argument are ignored. With `by_time` the second is the rows' own time.
    A partial is the chosen row; no row has a null in its second column.
    """

    width = 2
    partial_bytes = 24

    def __init__(self, name: str, *, greatest: bool, by_time: bool) -> None:
        super().__init__(name)
        self.greatest = greatest
        self.needs_time = by_time
        self.takes = ("a comparable column",) * (1 if by_time else 2)

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (value, key) = valid(groups, *arguments)
        chosen = rows.chosen(key, value, greatest=self.greatest)
        return [value.take(chosen), key.take(chosen)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return self.of_rows(groups, partials)
