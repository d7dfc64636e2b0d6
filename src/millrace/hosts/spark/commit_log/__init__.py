"""How a micro-batch counts: the records that the sink writes last, and what a restart reads.

    1. tasks write hidden result files and report what their buckets did             sink/network_sink.py
    2. the driver syncs the disk, for Spark does not sync its own files
    3. the driver gives the files their final names, fixed by batch and partition
    4. the driver merges the reports into one record                                 sink/reports.py
    5. the record is written: from here on the micro-batch is committed              commit_log.py
    6. Spark writes its own commit; if it does not, it replays the micro-batch, which repeats steps 1 to 5

    commit_log.py            `CommitLog`: one record per micro-batch; the marks that hold and end the source
    commit_reader.py         `CommitReader`: what a run reads in the records, and reports of itself
    progress_files.py        the progress of many partitions and groups, in files beside the records
    answer_index.py          which files hold the latest answers
    plan_log.py              `PlanLog`: one file per version of the plan
    torn_files.py            what a power cut left of Spark's own files for batches that are not on record
    checkpoint_manifest.py   `CheckpointManifest`: buckets, stages, the first text and the history of changes

The source reads the records for the next micro-batch: progress of streams, wake-ups, what later levels wait for.
"""
