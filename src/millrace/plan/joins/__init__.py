"""How several inputs are joined: what the language knows of a join becomes nodes.

- `time_limits`  how far apart the times of joined rows may be, and what follows from several such limits
- `join_steps`   one step of a pipeline: its keys, how long each side is kept, what is left to check
- `join_order`   one multi-way join or a pipeline, and in which order
- `join_cost`    what an in-order window join costs, in closed form (003)

In come `JoinInputs` with their conditions, out goes a tree of `Join` nodes. The language calls it; `explain` and the
experiments read the costs.
"""
