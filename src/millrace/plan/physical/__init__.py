"""A network after all rules, ready to be built as query graphs: whole for one process, or cut into levels for Spark.

- `stages`              `physical(network)`: the plan, its graphs and its levels
- `graph_builder`       adds the operators of one query to a graph
- `operator_choice`     which operator of the kernel carries out a node
- `pane_choice`         panes or buffered rows, and the low level of an aggregate
- `group_promises`      which aggregates use promises of single groups
- `levels`              where a plan is cut: exchanges and crossings, and the keys that rows are spread by
- `scheduling_options`  strategies and break nodes, for all operators or for named ones

Hosts run what `stages` builds; `explain` and `evolution` read the rest.
"""
