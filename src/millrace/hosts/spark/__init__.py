"""The Spark host: one streaming query per network, durable and distributed.

    files, clock, end ─ source ─┐
    any source of Spark's ──────┴─► exchange rows (bucket, port, seq, blob, note) ─► groupBy(bucket)
        transformWithStateInPandas: stage 1 [─► stage 2 … ─► reserved stages] ─► sink ─► commits/N.json

    host.py              `SparkRun`: opens the session, drives the query, reads its commits, makes changes
    restartable_query.py the network as Spark's query: source, stages, sink; held and started again
    session/             the Spark session, its start, its worker processes
    source/              streams into exchange rows: the low level, in the tasks that read
    exchange/            exchange rows, and which bucket a row goes to
    stage/               a high level of the network, one bucket at a time, with its state
    sink/                results and reports of a micro-batch, committed; sinks that Spark writes
    commit_log/          the records of micro-batches, the plans, the manifest of the checkpoint
    failures.py          errors on their way from a worker process to the driver
    operator_reports.py  what operators count in the tasks of a micro-batch, added up
    batch_times.py       where the time of a micro-batch goes

Plans are data: source, stages and sink read the plan by the number that travels with the rows. Bounds travel on the
same rows, so a result leaves in the micro-batch that completes it. Only this package imports PySpark.
"""
