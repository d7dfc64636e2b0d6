"""What `import millrace as mr` gives: networks built and run in Python.

- `network` is `Network`: it declares streams and queries, and runs them; `relations` is `Relation`, a query built step by
  step. Both are text of SQL (see docs/decisions/0024): `stream_text`, `window_text`, `join_text` and `query_text` write it
  from the arguments of Python and refuse wrong ones; `durations` writes lengths of time, `relation_times` finds the time.
- `runs` opens a run on any host; `handle` is `Handle`, a run in its own thread; `reader` reads its answers, `server`
  serves them over HTTP, `console` prints them and the progress.
- `polled_source` is `Polled`; `dataframes` takes the DataFrames of Spark; `expectations` is for `explain`.

In: arguments of Python users. Out: a network of the plan, and a run of a host. Commands and testing import this package.
"""
