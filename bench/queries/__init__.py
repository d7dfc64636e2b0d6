"""What all systems compute, in our words, in Spark's and in DuckDB's, and the input files that they read.

`workload` says what a query has to offer, and holds the count per window; the others are one query each.
"""
