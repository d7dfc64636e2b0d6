"""Joins of update streams (002 section 3.2): the latest rows of equal keys.

In come rows and bounds of two or more inputs; out go the matches of the latest rows of all inputs.

- update_join.py: as rows come, for inputs behind queues; of a batch only the latest match of a key
- timed_update_join.py: in order of time, every match, for what must not depend on when rows come: below a queue
- latest_rows.py: the latest row of each key of an input
"""
