"""The answers of a run over HTTP, on this machine alone.

- server.py: what is answered, and to whom
- http_limits.py: what connections and requests may take

It reads a run's answers through `api/reader.py`; a handle and `millrace serve` start it.
"""
