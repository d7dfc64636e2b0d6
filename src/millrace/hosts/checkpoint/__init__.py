"""What survives a crash of the local host, and how files survive a power cut on every host.

    checkpoint.py      `Checkpoint`: segments as files, and `current.json`, which names the valid ones. An epoch is
                       committed when that file is replaced
    digests.py         by which damage is noticed before it is used
    durable_files.py   files that are replaced whole, records and rows with their digests, folders, locks
    read_log.py        `ReadLog`: what the files of a stream were when they were read
    file_system.py     `Files`: the calls by which all of this touches the disk, and which tests replace

A checkpoint of another layout is refused before anything is touched (`other_version`). The Spark host keeps its own
record in `spark/commit_log` and uses `durable_files` for it.
"""
