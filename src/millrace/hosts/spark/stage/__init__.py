"""A high level of a network: its buckets' query graphs in a stateful stage of Spark.

    shipped_stage.py   `ShippedStage`: what Spark ships and calls; loads the rest where rows come
    stage.py           `Stage`: called with the exchange rows of one bucket; opens, works, saves
    bucket.py          `Bucket`: the graph at work, and the bounds of the streams and levels that feed it
    bucket_input.py    `BucketInput`: what a micro-batch brings, and what is passed on to later levels
    bucket_queues.py   `BucketQueues`: the update queues of a bucket, and their reports
    bucket_modes.py    what its in-order joins and its aggregates say of themselves
    budget.py          how many rows they may release in a micro-batch
    bucket_state.py    `BucketState`: segments and a manifest in Spark's state store
    segment_files.py   segments as files that the worker processes of a machine share

In come exchange rows; out go exchange rows for later levels, or results and reports for the sink.
"""
