"""Deterministic simulation: the local host in simulated time, on a disk that forgets, with everything by a seed.

    simulate.py         `simulate`: a user's own network, held to what it gives in one go
    scenario.py         `Scenario`: a network, what arrives, what happens to its runs; `played` plays it
    checked_run.py      a run whose promises are checked at every step
    simulated_clock.py  work takes what chance says, waiting ends when a row arrives
    arriving_input.py   rows that arrive at their times, read in batches of any size
    run_faults.py       kills, power cuts, disks that fail, damage
    result_store.py     where results go
    shrinking.py        a failing scenario made small

The code under test is the product's own: the host's loop, its checkpoint and its sinks. Only its clock, its inputs and
its disk (`simulated_files`) are others, so what is decided by chance elsewhere is decided by the seed here. The
networks of our own tests, and the naive reference that they are held to, are in `tests/simulation`.
"""
