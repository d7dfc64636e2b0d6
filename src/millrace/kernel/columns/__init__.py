"""Columns in, columns out: what is computed of whole Arrow columns.

- expressions.py: the tree of an expression; casts.py and scalar_functions.py compute its nodes, date_formats.py writes
  times as text, short_circuit.py computes AND, OR and CASE where user functions stand in them
- functions/: the functions of SQL by family; lambdas.py: those with an expression of their own
- sql_types.py: types as SQL spells them; decimals.py: exact numbers; interval_values.py: lengths of time and months
- nested/: arrays, structs, maps and JSON
- user_functions.py: functions that users wrote in Python, and how their code is found
- grouping.py: groups of rows by several columns, and folds over all groups at once
- comparison.py: equality of keys, and whole numbers in the order of a column's values
- hashing.py: the hash that checkpoints rest on, and a faster one of texts
- integers.py: arrays of whole numbers: order, distinct values, ranges, room for more

All rooms of the kernel import it; language and plan import expressions, functions and casts. It imports only elements
and errors.
"""
