"""The Spark session: started once, quietly, with the settings that checkpoints need.

session.py         open, join and leave a session; its settings; which Java is needed
class_archive.py   Spark's Java classes as an archive, so that Java starts with less work
worker_daemon.py   the process that Spark forks its Python workers from, with all modules loaded
shipped_code.py    this package and the user's modules, for executors on other machines
"""
