"""From text to bound statements; the only part that knows SQL's grammar.

Read as: `dialect` (tokens), `script_parser` and its bases (statements), `ddl` and `binder` (names and types),
`network` (all of a script), `changes` (statements to a network that runs).
"""

from millrace.language.change_requests import bind_changes, declarations_of, read_file
from millrace.language.grammar.intervals import parse_interval
from millrace.language.grammar.script_parser import parse_script
from millrace.language.script import bind_expression, parse_network

__all__ = [
    "bind_changes",
    "bind_expression",
    "declarations_of",
    "parse_interval",
    "parse_network",
    "parse_script",
    "read_file",
]
