"""Policies of an update queue: which of the keys that wait is next (002 section 5).

An order (`KeyOrder`) is told of accepted rows and asked for keys. It keeps its columns in the queue's key cells, so
that an order of another kind can go on with the keys that wait. Only storage.py makes orders.

- key_order.py: lines of keys; `InPlace` and `UpdateFifo`
- linecutting.py: keys that are updated seldom pass others, where that is expected to help; linecutting_guard.py: as far
  as it is measured to help
- by_access.py: keys that are read now and then leave just before they are read

LINECUTTING as printed is a baseline: kernel/baselines/linecutting_as_printed.py.
"""
