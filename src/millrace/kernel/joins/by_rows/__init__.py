"""Joins whose windows may count rows (001 section 5).

- rows_join.py: the operator `RowsJoin`; a row is joined when the bound is past its time
- row_windows.py: the window of a side: its last rows, of all or of each partition, or those of the last while

In: rows and the least bound of both inputs. Out: each pair once, at the time of its later row, and bounds.
"""
