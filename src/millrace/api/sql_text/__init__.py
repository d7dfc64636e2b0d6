"""SQL written from the arguments of Python; wrong arguments are refused here.

- `stream_text` declares streams, `query_text` queries and whole scripts.
- `window_text` is the window clause, `join_text` joins, `sequence_text` as-of joins and sequences.
- `durations` reads lengths of time.

In: what the methods of `Network` and `Relation` are given. Out: text of SQL (see docs/decisions/0024).
"""
