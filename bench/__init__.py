"""Ourselves beside our peers: `python -m bench NAME` runs a workload; see README.md.

- `workloads/`: one file per workload
- `queries/`: what all systems compute, and their input
- `systems/`: our hosts, stock Spark, DuckDB
- `measures/`: speeds, answers, staleness, memory, and the log of results
- `results/`: the log, one file per workload
"""
