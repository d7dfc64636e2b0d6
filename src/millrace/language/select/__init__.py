"""Queries into trees of plan nodes.

    query_binder      bodies, FROM and selects
    node_places       the places of nodes, for later refusals
    refused_selects   what is refused in a select
    select_binder     the select list, HAVING and QUALIFY, over rows or over keys and aggregates
    aggregate_calls   calls of aggregates, found and bound; written_call: what stands around one
    aggregate_forms   each aggregate of SQL brought to one of the kernel: DISTINCT, WITHIN GROUP, constants
    group_keys        GROUP BY: columns, expressions, ordinals, aliases
    items             names of result columns, and what `*` stands for
    ranks             row_number, rank and dense_rank with OVER
    distinct_rows     SELECT DISTINCT
    exploded_rows     LATERAL VIEW, UNNEST, explode
    order_by          ORDER BY time
    unions            UNION of selects and of streams

Comes in: `Body` of the grammar and the declared streams. Goes out: a `BoundRelation`. Imported by updates and script.
"""
