"""Update queries: queries over streams whose rows replace each other by key.

    update_queries   refusals of queries without update semantics, ACCESS, changes of a running queue
    queue_options    the options of queues that hold for a query, its own and those of its streams

Comes in: bound queries and options. Goes out: checked options and accesses. Imported by script.
"""
