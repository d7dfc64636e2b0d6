"""What `import millrace as mr` gives: networks built and run in Python.

- `network` is `Network`: it declares streams and queries, and runs them; `Polled` is a source that it asks for rows.
  `statement_list` has its statements so far.
- `relations` is `Relation`, a query built step by step; `windowed` its windows before they are aggregated;
  `relation_inputs` makes relations the inputs of a join, `relation_times` finds the time column of their rows.
- `sql_text` writes SQL from the arguments of Python: a network is kept as text of SQL (see docs/decisions/0024).
- `runs` opens a run on any host; `handle` is `Handle`, a run in a thread of its own.
- `reader` reads the answers of a run, `http` serves them over HTTP, `console` prints results and progress, of
  the parts in `terminal`; `run_log` tells them as a log for programs.
- `dataframes` takes the DataFrames of Spark; `expectations` is for `explain`; `function_reference` lists all functions.

In: arguments of Python users. Out: a network of the plan, and a run on a host. Commands and testing import it.
"""
