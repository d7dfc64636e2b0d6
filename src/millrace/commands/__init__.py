"""The command line, one file per command: arguments in, one call out.

- `command_line` lists the commands, loads the one that is asked for, and turns errors into exit codes.
- `arguments` holds what several commands share: files, intervals, timeouts.
- `new` looks at files of data, and writes a first script for them.
- `run` is `millrace run` and `millrace serve`; `watch` runs a file again at every save.
- `control`, `why` and `latest` ask a run in another process, or its checkpoint.
- `check` and `explain` read a file of queries and run nothing; `functions` lists those of SQL;
  `doctor` checks the machine.
- `demo` and `figures` call the experiments.

Each command module has `add_to(commands)`, which adds its arguments and the function that carries it out; the summary
for `millrace --help` stands in `command_line`, so that help loads no command.
No command imports pyspark before it needs Spark. Only `millrace.__main__` imports this package.
"""
