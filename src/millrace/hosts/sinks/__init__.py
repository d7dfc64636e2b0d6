"""Where results go, as all hosts check it and as the hosts of one process write it.

    sinks.py     `Sinks`: which query writes where, checked before a run or a change; results in memory; latest answers
    outputs.py   `Outputs`, for the local and the virtual host: rows are gathered, staged, published after the commit
    kept_rows.py the last rows of a sink `memory` or `console`
    writers.py   `Writer`, the protocol of a sink that a user writes; rows staged for it, and epochs written again

In come batches from the kernel; out go files, calls of writers, and results to listeners. The Spark host uses `Sinks`
and `writers` too, and writes in its tasks (`spark/sink`).
"""
