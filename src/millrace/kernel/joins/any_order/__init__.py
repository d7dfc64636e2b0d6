"""The order-agnostic join: a match leaves as soon as the last of its rows has come (004 Fig. 4).

- join.py: the operator `Join`
- join_core.py: how rows match and what is kept of each input; `in_order` uses it too
- match_store.py: the rows of one input that others may still match; those that came last are looked through
- match_run.py, kept_run.py: the others, in runs that are searched by key and time; a kept run is a segment
- match_keys.py: keys as whole numbers
- slow_release.py: rows without a match leave a few at a time, so that a bound makes no burst

In: rows and the bound of each input. Out: joined rows, the bound on their time, promises about pairs of times.
"""
