"""Windows of a select, over the rows that it reads.

    window_clauses   windows as they are written: brackets, WINDOW, table functions, Spark's window(); checks
    clock_clauses    windows by the clock of a zone, by months, or moved by an offset
    extents          how long windows may be
    windowed_rows    what a select aggregates over: a window that it writes, or the one that its groups stand for
    late_by_window   what queries read of streams whose rows are late by window
    outlets          the same rows with a further time column, or their number, as their time

Comes in: clauses and a `BoundRelation`. Goes out: windows of `plan.nodes.aggregate_nodes` and the relation that they
are over. Imported by joins and select.
"""
