"""The virtual host: a network at work in virtual time, from the first arrival to the end of its input.

    host.py      `VirtualRun`: the clock jumps from one event to the next, and moves by the cost of work in between
    clock.py     `VirtualClock`, and `Costs`: the time that a row takes at an operator
    intake.py    the rows of each stream in order of arrival
    samples.py   the queues at evenly spaced moments, for figures

A run is a function of its input, so it can be repeated exactly. It keeps no checkpoint.
"""
