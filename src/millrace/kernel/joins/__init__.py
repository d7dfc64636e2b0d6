"""Joins: rows of several inputs that match each other, each operator beside its store.

- sides.py: what a join is told of its inputs
- any_order/: a match leaves as soon as its last row has come; inputs need be neither in order nor in step
- in_order/: the same matches, in order of time: Sync-Filter, Filter-Order, adaptive
- sequences/: one row of another stream for each row: as-of joins, and one to one
- tables/: each row with the rows of a table, as the table is at the row's time
- by_rows/: windows that count rows, or hold the rows of the last while

In: rows of each input, and their bounds. Out: joined rows and bounds. The plan makes these operators; a join of updates
is in updates/.
"""
