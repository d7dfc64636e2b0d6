"""What operators keep rows in: immutable runs, each a segment, and buffers for rows that came lately.

Every store has a length (its rows), `nbytes`, `changes` (what a save writes) and `restore`.

- run_store.py: runs of rows and when they are merged; the stores below and those of the joins are built on it
- sorted_runs.py: rows in order of an integer column, such as time; released from the front
- keyed_runs.py: the current rows of each key, replaced as a whole
- row_blocks.py: rows under entry numbers, taken and released in any order
- key_table.py: a number for each key, in the order in which keys are first seen
- hold_buffer.py: rows that wait for a bound, and leave in order of time
- recent_rows.py: a few rows kept as they came, and looked through one by one
- row_gather.py: rows from several blocks as one batch

In: batches or tables of rows. Out: rows, and changes for a save. Operators of all rooms of the kernel import it, and so
does the table of latest answers; it imports only columns, elements and state.
"""
