"""Ourselves beside our peers, one file a workload; see README.md."""
