"""Requests to a run at work: changes of its network, and questions that only read.

    live_changes.py     `LiveChanges`: a request is carried out in the run's own thread, between two turns, as a whole;
                        the history of changes, and how a later run goes on from it
    run_lock.py         `RunLock`: other threads look at a run while it stands still
    request_folder.py   the folder through which other processes send requests
    read_requests.py    requests that only read: latest answers, staleness, queries
    replies.py          what a run replies, as data and as text

In come statements as text (`ADD QUERY`, `DROP QUERY`, `ALTER QUERY`, `SHOW ...`) or JSON; out go replies, and calls of
the run's methods `settle`, `points`, `prepare`, `shape` and `keep`, in this order (`hosts/host_run.py`).
"""
