"""The low level of a two-level aggregate: rows become partials where they are read; a `WindowAggregate` merges them.

- pre_aggregate.py: `PreAggregate`, the rows of a task at once; nothing is kept
- low_aggregate.py: `LowAggregate`, a table of fixed size in which each group has a slot
- slot_table.py: that table, and the other slot that a group may take
- flush_policy.py: `FlushPolicy`, when entries of ended windows leave it

In: rows and bounds. Out: partials as rows, whose time is the last instant of their pane, and bounds.
"""
