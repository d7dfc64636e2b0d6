"""Sequence joins: each row of the first input with one row of the second that is not after it.

- sequence_join.py: what both operators have in common: rows that wait for a bound, and the pairs they leave in
- asof_join.py, asof_store.py: the latest row of the second input (001 Fig. 12), and how it is kept
- chronicle.py, keyed_fifo.py, fifo_runs.py: the earliest row that no other has used (001 Fig. 13), and how it is kept
- key_time_store.py: what both stores have in common: runs of rows by key and time

In: rows and the bound of each input. Out: pairs at the time of the first row, and bounds.
"""
