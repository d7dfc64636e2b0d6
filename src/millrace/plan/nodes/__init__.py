"""A network as frozen data: the language builds it, all other parts of `plan` read it.

- `query_network`     `QueryNetwork` and `Query`: what one run carries out together
- `endpoints`         `Stream`, `Table`, `Sink` and their `Connector`: what is declared
- `node`              the base of all nodes: what every part of a plan asks of one
- `relational_nodes`  scans, filters, projections, unions, ranks, orders
- `aggregate_nodes`   windows, and aggregates over them
- `join_nodes`        joins in any order, by rows, as-of joins and chronicles
- `table_nodes`       joins with tables
- `update_nodes`      queues of update queries, and what stands above them
- `conditions`        expressions taken apart and put together
- `content_names`     names made from what a part computes
- `plan_data`         a network as JSON, of a closed list of classes

To add a node: its class here, its operator in `physical/operator_choice.py`, its words in `explain/labels.py`.
It imports no other part of `plan`. The repr of a node is part of the names by which saved state is found again.
"""
