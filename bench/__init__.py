"""Ourselves beside our peers, one file per workload; see README.md."""
