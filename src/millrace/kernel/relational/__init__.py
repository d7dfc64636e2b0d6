"""Relational operators, one per file.

Without state: filter.py, project.py, union.py (rows as they come), since.py (rows from a time on),
explode.py (a row per element of an array).
With state until a bound passes: merge.py (union in order of time, and sort), distinct.py, rank.py (ranks among rows of
equal time), number.py (sequence numbers over several inputs).

In: batches and bounds of the inputs. Out: batches, and the bounds that follow. The plan makes these operators.
"""
