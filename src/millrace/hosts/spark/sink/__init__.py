"""The end of a micro-batch: results into files, reports into the commit log.

    network_sink.py   `NetworkSink`: how a micro-batch is committed, step by step
    reports.py        the reports of all buckets, merged into one record
    destinations.py   `Destinations`: which folder, writer or memory the results of each query go to
    deliveries.py     `Deliveries`: committed rows on their way to writers, in a thread of the run
    result_frames.py  committed results as a streaming DataFrame
    relay.py          `Relays`: committed files on their way to sinks that Spark writes

In come output rows of the last stage; out go result files, latest answers, calls of writers, and a commit record.
"""
