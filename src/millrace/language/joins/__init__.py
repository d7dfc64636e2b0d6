"""FROM with several inputs: from clauses and conditions to join nodes.

    join_binder       which kind of join it is; inner joins over time, joins over ROWS windows
    join_chains       joins of several kinds, from left to right: outer and as-of joins
    sequences         as-of joins and SEQ: each row with one row before it
    table_joins       joins with tables, IN and NOT IN over their rows
    written_tables    the same as they are written: what is refused, which conditions read tables
    written_join      a join with all names in its conditions looked up
    join_inputs       one input: its rows, time, window, columns
    join_scopes       the names of all inputs
    join_conditions   conditions sorted into keys, limits on times, and the rest
    bands             what a condition says about the times of two inputs
    spans             times plus constants, as conditions write them
    joined_rows       the relation of a join, the times its rows may have, and joins that are refused

Comes in: a `Select` and the relations of its inputs. Goes out: a `BoundJoin`. Imported by `select.query_binder`.
"""
