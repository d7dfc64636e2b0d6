"""The figures of 002, and beyond it: update streams whose keys wait in a queue.

- `update_queues`: the query, its updates, and the case that measures how stale its keys are
- `queue_staleness`: application and queue staleness, kinds of queues, LINECUTTING, memory
- `slow_updaters`: keys that differ much in how often they are updated, and slow ones that come at once
- `update_windows`: windows under update semantics
- `overload`: a thousand keys, several queries on one processor, a load that changes

Comes in: updates as numpy columns. Goes out: staleness in seconds or ticks, by case.
"""
