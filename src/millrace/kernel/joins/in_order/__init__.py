"""Joins whose results leave in order of time (003).

- ordered_join.py: the operator `OrderedJoin`: Sync-Filter, Filter-Order, and the choice between them
- input_queues.py: rows of the inputs that wait to be joined; results wait in a hold buffer
- join_monitor.py: rates and costs, by which the adaptive join chooses

In: rows and the bound of each input. Out: joined rows in order of time, and bounds. Matching is that of `any_order`.
"""
