"""What travels between tasks: exchange rows, and the bucket that each goes to.

    rows.py      the columns of exchange and output rows, their ports, tuples packed as Arrow blobs
    buckets.py   the ids of buckets, one per shuffle partition; tuples split by key

Sources and stages write exchange rows, stages and the sink read them.
"""
