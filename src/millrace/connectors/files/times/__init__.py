"""Times as files spell them.

- `timestamps` reads text and numbers as timestamps, and writes timestamps as text.
- `timestamp_patterns` reads text by a pattern such as `dd/MM/yyyy HH:mm`.
"""
