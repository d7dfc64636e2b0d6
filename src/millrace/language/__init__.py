"""From text to a network of bound queries; the only package that knows SQL's grammar and imports sqlglot.

    grammar/            text -> statements, each part with its place
    expressions/        expressions -> the kernel's, with names and types; relations; which functions SQL has
    windows/            windows of a select, in all spellings, over the rows that it reads
    joins/              FROM with several inputs
    select/             queries: select lists, groups, ranks, DISTINCT, unions, ORDER BY
    declarations/       streams, sinks, functions and aggregates of users, options of a query
    updates/            update queries and the options of their queues
    catalogue           statements -> what they declare, by name
    inspection          answers to SHOW, DESCRIBE and EXPLAIN
    clause_places       where queries and their clauses stand in a text
    option_places       where an option stands that a connector refuses
    month_columns       numbers of months leave a query as text
    script              statements -> a network: `bind_network`, `parse_network`
    change_requests     statements to a running network

Comes in: text, or statements built in Python. Goes out: `plan.nodes` (a network of queries), or a `QueryError` with a
hint and the place in the text. Imports point one way: grammar <- expressions <- windows <- joins <- select <- updates
<- script, and expressions <- declarations <- updates. Imported by the API, commands, testing and experiments.
"""

from millrace.language.change_requests import bind_changes, check_user_code, declarations_of, read_file
from millrace.language.clause_places import QueryPlace, query_places
from millrace.language.grammar.script_parser import parse_script
from millrace.language.grammar.text.intervals import months_in, parse_interval
from millrace.language.grammar.text.variables import filled
from millrace.language.option_places import place_in
from millrace.language.script import bind_expression, bind_script, parse_network

__all__ = [
    "QueryPlace",
    "bind_changes",
    "bind_expression",
    "bind_script",
    "check_user_code",
    "declarations_of",
    "filled",
    "months_in",
    "parse_interval",
    "parse_network",
    "parse_script",
    "place_in",
    "query_places",
    "read_file",
]
