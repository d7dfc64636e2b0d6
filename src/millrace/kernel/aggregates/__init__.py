"""Aggregates over windows: one operator per file, on partials that are merged.

An aggregate is computed in three steps: rows to partials, partials to fewer partials, partials to results (partials.py,
with the functions in functions/). The operators differ in what a window is.

- aggregate_operator.py: what the first three share: rows are gathered, then aggregated many at once
- window_aggregate.py: windows of a fixed range and slide, calendar windows, instants; it keeps its state in panes/
- marked_aggregate.py: the windows that a queue of windows has committed to
- session_aggregate.py: sessions, which end after a gap
- pair_aggregate.py: groups of joined rows, closed by promises about pairs of times
- trailing_aggregate.py: a result per row over what came before it; time_partials.py and two_stacks.py are its parts
- partitioned_rows_aggregate.py: the last n rows of each group
- low_level/: the low level of a two-level aggregate
- span_folds.py: folds of many spans of a sequence at once

In: rows, or partials of a lower level, and bounds. Out: results, and bounds. The plan makes these operators; updates
uses the window geometry.
"""
