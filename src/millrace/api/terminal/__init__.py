"""What a terminal shows of a run, part by part; `console` puts the parts together.

- `status_line`: one line on standard error, rewritten in place, never wider than the terminal
- `result_table`: results in columns that fit the terminal; `colours`: where the terminal has them
- `phase_line`: the same for what takes long before a run has anything to say, with the seconds so far

In: texts. Out: what stands on the terminal. The rest of the API, the commands and the experiments import it.
"""
