"""The answers of a run over HTTP, and its live page.

- server.py: the server, and what it answers to programs
- page_routes.py: what it answers to the page, which is in `dashboard/`
- handler.py: JSON, errors and events, as every answer needs them
- access_rules.py: who may ask
- http_limits.py: what connections and requests may take

It reads a run through `api/reader.py`; a handle and `millrace serve` start it.
"""
