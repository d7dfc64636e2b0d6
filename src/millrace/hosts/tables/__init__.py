"""The tables of a run: reference data that rows are joined with, read as a whole and in versions.

- `table_reader`  a table's rows from where it is declared to be; refuses a broken primary key
- `table_files`   a version as a file of the checkpoint; what a process has loaded, once
- `run_tables`    the versions of a run's tables: read, recorded, handed to operators, dropped

In: declared tables, feeds from Python, and how far streams have come. Out: `TableVersion`s for the operators of a
graph, and a record of plain data that a checkpoint keeps. All hosts use it; it imports no host.
"""
