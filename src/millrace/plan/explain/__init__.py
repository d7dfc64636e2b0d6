"""A physical plan in words, for `millrace explain` and the API.

- `plan_text`      the whole text: a tree per query, the state table, the query graph
- `labels`         the words for nodes, windows and time contracts
- `join_labels`    joins and sequences: what matches, how long rows are kept, why they are made so
- `update_labels`  queues: policy, key, and why they stand where they do
- `cost_notes`     what in-order joins are expected to cost
- `state_labels`   what bounds the state of a node
- `query_picture`  the query graph as data, `picture_formats` as JSON, DOT and SVG, `layered_layout` where nodes stand
- `html_text`      a table as HTML, for what shows itself in a notebook
- `time_text`      lengths of time and times as text, for all messages

In comes a `Physical` plan, out goes text or a picture; nothing here changes a plan.
"""
