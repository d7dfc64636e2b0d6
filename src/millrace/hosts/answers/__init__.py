"""The latest answers of update queries: one per key, pulled at any time.

    answer_table.py    `AnswerTable`: the answers of one query, and what has changed since a version
    answer_files.py    they as files in a checkpoint, which other processes may read
    run_answers.py     `RunAnswers`: the tables of all update queries of a run, through changes and restarts
    subscriptions.py   `Subscription`: changes as they come, at the client's own pace

In come results from `sinks`; out go rows to `api` (`latest`, `changes`), to `control`, and files to the checkpoint.
"""
