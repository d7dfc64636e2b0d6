"""Streams into exchange rows: what happens before the shuffle, in the tasks that read.

    network_source.py   `NetworkSource`: the one source of a network; its offset holds one per stream, and the plan
    stream_files.py     `StreamFiles`: offsets over files that Millrace wrote, in name order
    followed_files.py   `FollowedFiles`: the same over the files of a user, which come and grow
    stream_partitions.py  `StreamPartitions`: offsets over the partitions of a source, and slices of them as tasks
    wakeups.py          `Wakeups`: micro-batches without rows, when an ETS or a queue asks for one, and the end
    low_level.py        `StreamLowLevel`: rows stamped, filtered, pre-aggregated, split by bucket and packed
    native_streams.py   streams that Spark reads: the low level as a step after Spark's own source
    python_streams.py   `PythonStreams`: feeds, polled and pushed rows, as files
    feed_files.py       these files: written whole, removed from the front

In come files, Spark's sources and Python's feeds; out go exchange rows with tuples, and the progress of each stream.
"""
