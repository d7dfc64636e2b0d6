"""What `python -m bench NAME` runs: one file per workload, each with a function `run(rows, rounds)`.

`cases` has the workloads of `spark_table`, which are one table.
"""
