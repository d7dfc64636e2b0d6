"""Progress: how far each stream has come, which rows are late, and how a silent stream goes on.

- time_contract.py: what a stream declares about its timestamps
- ingress.py: the edge of a stream: rows get their time, and move the stream's bound
- admission.py: what decides that a row is late, from the future, or admitted
- quarantine.py: rows that are set aside before they enter, with their reasons and places
- order.py, partitioned_order.py: how far rows let the bound rise, one class per order contract
- partition_progress.py: how far each partition or group of a stream has come
- ets.py: where enabling timestamps are made
- open_windows.py: which rows below a bound a window can still take
- slack.py, roll_up.py, stamp.py: operators that make bounds of their own: from the rows, from the promises of groups,
  and from the clock (latent timestamps)
- released.py: the operator that tells which promise let rows leave

In: raw rows of a stream and the clock. Out: admitted and late rows, and bounds. The graph asks for enabling timestamps
(graph/ets_demand.py) and carries bounds from here on (graph/delivery.py). Imports columns, elements, state and operator
only.
"""
