"""Where things stand in a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from millrace.errors import Place
from millrace.kernel.columns.user_functions import UserFunction

SPAN = "millrace_span"
"""The key under which the parser leaves a node's first and last offset."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text whose offsets can be turned into places, and the functions of the user's own that it may call."""

    text: str
    functions: Mapping[str, UserFunction] = field(default_factory=dict, compare=False)
    """By name in lower case."""

    def place(self, start: int, end: int) -> Place:
        """The place of the characters `start` to `end`, both included; only its first line is quoted."""
        start = max(0, min(start, len(self.text)))
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line_end = len(self.text) if line_end < 0 else line_end
        line = self.text.count("\n", 0, start) + 1
        quoted = self.text[start : min(end + 1, line_end)]
        return Place(line, start - line_start + 1, quoted, self.text[line_start:line_end].rstrip("\r"))

    def of_token(self, token: Token) -> Place:
        """The place of a token."""
        return self.place(token.start, token.end)

    def of_node(self, node: exp.Expr) -> Place:
        """The place of a parsed expression, from its first to its last character."""
        spans = list(_spans(node))
        if not spans:
            return self.end()
        return self.place(min(start for start, _ in spans), max(end for _, end in spans))

    def end(self) -> Place:
        """The place after the last character that is no white space."""
        stop = len(self.text.rstrip())
        return self.place(stop, stop)


def _spans(node: exp.Expr) -> Iterator[tuple[int, int]]:
    """The spans known for a node; those of its parts when it has none of its own."""
    if SPAN in node.meta:
        yield node.meta[SPAN]
        return
    for part in node.walk():
        if SPAN in part.meta:
            yield part.meta[SPAN]
        elif part.meta.get("end") is not None:
            yield part.meta["start"], part.meta["end"]
