"""Streams that the tests of the language share, and how to bind a query over them."""

from __future__ import annotations

import re

from millrace.errors import MillraceError
from millrace.language import parse_network
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query

STREAMS = """
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'control.csv');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS FROM csv OPTIONS (path 'main1.csv');
CREATE STREAM main2 (source STRING, dest STRING, len BIGINT, at TIMESTAMP)
  INTERNAL TIMESTAMP AS at FROM csv OPTIONS (path 'main2.csv');
CREATE STREAM silent (srcIP STRING, len DOUBLE) LATENT TIMESTAMP FROM csv OPTIONS (path 'silent.csv');
CREATE STREAM other (srcIP STRING, destIP STRING, len INT, seen TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'other.csv');
"""


STATEMENTS = {each.split()[2]: each for each in STREAMS.split(";") if each.strip()}


def declared(text: str) -> str:
    """A text with the shared streams that it names, or with all of them: to parse those that it does not takes long."""
    words = set(re.findall(r"\w+", text))
    return f"{text};" + ";".join([each for name, each in STATEMENTS.items() if name in words] or STATEMENTS.values())


def query(text: str) -> Query:
    """The one query of a text over the shared streams."""
    (found,) = parse_network(declared(text)).queries
    return found


def root(text: str) -> Node:
    """The root of the one query of a text."""
    return query(text).root


def names(text: str) -> list[str]:
    """The result columns of a query."""
    return list(root(text).schema.names)


def refusal(text: str) -> MillraceError:
    """The error that a text is refused with."""
    try:
        parse_network(declared(text))
    except MillraceError as error:
        return error
    raise AssertionError(f"accepted: {text}")
