"""One file of a checkpoint is damaged, the run goes on from it: what becomes of its answers.

networks.py   small networks, each with another kind of state, and their input
damages.py    a bit that is flipped, a file that is cut off, gone, exchanged for another, or of an earlier commit
on_local.py   a run on the local host, by the command line in a process of its own
by_hand.py    the source, stages and sink of Spark without Spark: our files, our blobs in its state, our offsets
__main__.py   many cases, and the table of what became of them
"""
