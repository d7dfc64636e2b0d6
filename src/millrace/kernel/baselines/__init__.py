"""Baselines: what exists only so that the papers' figures can compare with it. Nothing here is a good choice for work.

A query asks for one by `WITH (baseline = '...')`: docs/sql/options.md lists all of them, and
decision 0023 says what makes one.
A baseline of a few lines stands as a branch beside what it is compared with: the in-order plan (is_in_order in
plan/physical), the in-order flush (`FlushPolicy`), naive memory (`HeldKeys`).

- all_windows.py: all windows of a key, or a random share, instead of the newest (002 section 6.3.1)
- linecutting_as_printed.py: keys cut the line by the printed rule (002 section 5.3)

Only the queues of kernel/updates import it.
"""
