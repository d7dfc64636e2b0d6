"""Windows under update semantics (002 sections 6 and 7.2): per key always the newest window, complete or not at all.

In come rows and bounds; out go the rows of windows with the number of their commitment, and closers behind the last row
of each. `MarkedAggregate` (kernel/aggregates) answers them.

- window_queue.py: the operator; acceptance.py: which rows it takes
- newest_windows.py: LAZY and EAGER, made of the parts below, which share the cells of window_cells.py
- window_rows.py: the rows that windows need; window_buffers.py: where they stand, key by key
- waiting_line.py: the keys that wait; commitments.py: those under processing; window_closings.py: what closes windows

All windows, or random ones, are a baseline: kernel/baselines/all_windows.py takes the place of newest_windows.py.
"""
