"""Update streams (002): queues in which newer rows take the place of older ones, and the join of update streams.

In come rows and bounds of streams with an update key; out go the rows that are next, as few as the work downstream can
take. The graph (kernel/graph) asks a queue for more and tells it when its rows have been processed; the plan makes one
from `QueueSettings`.

- queue.py: the contract of a queue, on top of that of an operator; queue_settings.py: policy, memory, budget, access
- update_queue.py: the queue of rows; storage.py: its keys, cells and rows, whatever its kind
- held_keys.py: one row per key; held_rows.py: every row, in the order of arrival
- update_batch.py: which rows of a batch are accepted, and how they lie by key
- staleness.py: how stale keys are, in queues of rows and of windows; frequency.py: how often keys are updated
- load.py: what a row costs, the load, when to shed and when to switch
- key_cells.py: columns with a cell per key; row_counts.py: what became of rows
- policies/: which key is next; windows/: the queue of windows; joins/: the latest rows of equal keys

All but the operators, `Queue` and `QueueSettings` is for this package and kernel/baselines alone.
"""
