"""From bound statements to query graphs: a network as data, rewritten, cut into stages, explained and evolved.

In comes a `QueryNetwork` of queries, each a tree of nodes, as the language binds it. Out goes a `Physical` plan, which
builds the graphs that the kernel runs.

- `nodes/`      a network as frozen data; what is true of a node type stands with it
- `rules/`      rewrites of a tree, in the order in which they are applied
- `joins/`      how several inputs are joined, how far their times may be apart, and what in-order joins cost
- `updates/`    update queries: the update key of a tree, where queues stand, and their settings
- `physical/`   which operator carries out a node, where a plan is cut for Spark, and the graphs
- `explain/`    a plan in words
- `evolution/`  changes of a running network, and a network that goes on from the state of another one

It imports the kernel and `errors` alone. The language, the connectors, the hosts and all above them may import it.
"""
