"""Joins with tables: reference data that is there as a whole, in versions.

- `table_versions`  what a table holds, version by version, and from which time on each is in force
- `table_index`     the rows of one version by the hash of some columns: columnar, sorted, shared by all operators
- `table_join`      the operator: each row with the rows of the version that is in force at its time

In: the rows of a stream, and the versions, which the host hands to each operator. Out: joined rows, at once.
"""
