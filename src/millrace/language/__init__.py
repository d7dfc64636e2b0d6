"""From text to bound statements; the only part that knows SQL's grammar.

Read as: `dialect` (tokens), `script_parser` and its bases (statements), `ddl` and `binder` (names and types),
`network` (all of a script), `changes` (statements to a network that runs).
"""

from millrace.language.changes import bind_changes, declarations_of, read_file
from millrace.language.intervals import parse_interval
from millrace.language.network import bind_expression, bind_select_item, parse_network
from millrace.language.script_parser import parse_script

__all__ = [
    "bind_changes",
    "bind_expression",
    "bind_select_item",
    "declarations_of",
    "parse_interval",
    "parse_network",
    "parse_script",
    "read_file",
]
