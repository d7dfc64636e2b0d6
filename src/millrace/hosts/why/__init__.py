"""Why a result has not come yet, and why one came when it did: `millrace why`, `SHOW WAITS`, `Handle.why`.

    lag.py        `Lag`: which queries wait for which streams, found in one graph, merged over the buckets of Spark
    waits.py      the facts, as plain data: `StreamLag`, `Awaited`, `Wait`, `Queued`
    verdicts.py   the facts in words: what holds a query back, and what releases it
    past_releases.py  which promise released past results, for queries that tell it

In come executors, or the shares that buckets have reported; out goes a `Lag`.
"""
