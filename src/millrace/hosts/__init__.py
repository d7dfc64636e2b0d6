"""Hosts: they own the loop and the clock, push rows into the kernel, take results out, and commit.

    local/     one process, the machine's clock, milliseconds
    virtual/   one process, discrete events in virtual time: exact, and repeatable
    spark/     one streaming query per network: durable and distributed

The same names mean the same in all: `host.py` has the run, `clock.py` its clock, `intake.py` its input (on Spark
`source/`). A host imports no other host. What they share:

    host_run.py       `HostRun`, the methods that every run has
    run_options.py    `RunOptions`, which every host takes whole
    run_control.py    `RunControl`, composed into every run: requests, changes, its stop, its locks
    report.py         how a run ends, and what it reports of itself
    system_clock.py   `SystemClock`: the machine's clock, but never back
    arrivals.py       when the rows of a replayed stream arrive
    checkpoint/       the checkpoint of the local host; files and locks that survive a power cut
    tables/           reference data that rows are joined with: read, kept in versions
    sinks/            which sinks a network has; results in epochs; writers of the user's own
    answers/          the latest answers of update queries, and subscriptions to them
    control/          changes and questions to a run at work
    why/              what holds time back, and in words
    telemetry/        metrics of a run for monitoring systems

In come a network (`plan`), options, feeds and input files; out go results, reports and commits. `api` imports this
package, and so do `testing` and `experiments`; it imports `kernel`, `plan` and `connectors`.
"""
