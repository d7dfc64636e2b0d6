"""The query graph and its execution: operators, the arcs between them, and which of them works next.

- graph.py: nodes, arcs with registers, one buffer per node
- executor.py: the two-step cycle, and what a host calls: push, run, take, save
- stream_edges.py: where rows and bounds of the streams enter
- step.py: the execution step of one operator
- step_size.py: how many rows a step takes, by strategy and measured time
- delivery.py: how rows and bounds reach the consumers of a node; ETS arcs
- ets_demand.py: which source is asked for an enabling timestamp, and when
- strategy.py: rules that name the next operator, and the state table of a graph
- scheduler.py: which component and fragment is next when a rule gives control back
- chain.py: where break nodes free most memory
- queue_gate.py: which queues may release rows, and when those have been delivered
- operator_modes.py: what in-order joins and aggregates say of themselves, by query
- snapshot.py: state as a host stores it
- row_account.py: what became of the rows of a stream

In: a graph of operators, rows, a clock. Out: results, bounds at sinks, snapshots, metrics. Imports operator, progress
and the contract of queues (updates/queue.py); no operator imports it.
"""
