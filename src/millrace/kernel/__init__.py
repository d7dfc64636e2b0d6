"""The kernel: a query graph at work. No I/O, clock, thread or randomness: hosts own these and pass them in.

In: rows that a host pushes into the sources of a graph, a clock, and a budget of work. Out: results at its sinks, saved
state, metrics. It imports nothing but numpy and pyarrow; plan builds its graphs, hosts drive them.

- elements.py: batches of rows, and punctuation: all that travels along an arc
- operator.py: the contract of an operator, with an example; operator_index.py names every operator
- state.py: segments, the pieces of state that are saved; clock.py, metrics.py, latency.py
- columns/: expressions, casts, hashes, groups: columns in, columns out
- progress/: how far a stream has come, which rows are late, enabling timestamps
- graph/: nodes and arcs, the executor, scheduling, snapshots
- stores/: what operators keep rows in
- relational/, aggregates/, joins/, updates/: the operators, each beside its store
- baselines/: what exists only to be compared with

Five ideas:
1. Bounds. A bound on an arc promises that no later row is below it. What it passes can be closed, emitted or dropped.
2. Buffers and registers. What a node yields is stored once; each consumer has a head pointer, and a register with the
   bound of that input.
3. Rules. After each step a rule names the next operator; a strategy is a table of rules, not code in operators.
4. Segments. State is immutable Arrow tables under numbers; a save writes the segments that came since the last one.
5. Buckets. On Spark a graph is cut at exchanges, and each bucket of keys runs its part in an executor of its own.
"""
