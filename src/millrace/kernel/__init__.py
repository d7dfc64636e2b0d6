"""The query graph at work: no I/O, no clock, no threads, no randomness."""
