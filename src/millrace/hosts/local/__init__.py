"""The local host: a network at work in this process, by the machine's clock.

    host.py      `LocalRun`: the loop. A turn reads every stream, lets the kernel work for a moment and delivers
                 results; a commit saves an epoch
    stream_reader.py  what a turn reads of each stream, and when it is silent
    intake.py    the open inputs of the streams, reopened when a changed network reads more columns
    cut_input.py chunks that are read in pieces
    pace.py      replayed streams in scaled real time

In come rows from connectors and feeds; out go results to `hosts/sinks` and segments to `hosts/checkpoint`.
"""
