"""Where things stand in a text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from millrace.errors import Place
from millrace.secrets import masked

Node = TypeVar("Node", bound=exp.Expr)

_SPAN = "millrace_span"
"""The key under which a node has the text that it was read from, with its first and last offset."""


class SourceText:
    """A text whose offsets can be turned into places."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _shown(self) -> str:
        return masked(self.text)

    @cached_property
    def _lines(self) -> list[str]:
        """The lines without secrets. Places share them: a line may be as long as the text."""
        return self._shown.split("\n")

    def word(self, token: Token) -> str:
        """The text of a token, unless it is a secret."""
        secret = self._shown[token.start : token.end + 1] != self.text[token.start : token.end + 1]
        return "***" if secret else str(token.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self._lines)]

    def place(self, start: int, end: int) -> Place:
        """The place of the characters `start` to `end`, both included; only its first line is quoted."""
        start = max(0, min(start, len(self.text)))
        number = bisect_right(self._starts, start) - 1
        line, column = self._lines[number], start - self._starts[number]
        return Place(number + 1, column + 1, line[column : column + end + 1 - start], line.removesuffix("\r"))

    def of_token(self, token: Token) -> Place:
        """The place of a token."""
        return self.place(token.start, token.end)

    def end(self) -> Place:
        """The place after the last character that is no white space."""
        stop = len(self.text.rstrip())
        return self.place(stop, stop)

    def mark(self, node: exp.Expr, start: int, end: int) -> None:
        """Note in a node where it stands."""
        node.meta[_SPAN] = (self, start, end)


def place_of(node: exp.Expr) -> Place | None:
    """Where an expression stands, from its first to its last character; None if it was not read from a text."""
    if _SPAN in node.meta:
        source, start, end = node.meta[_SPAN]
        return source.place(start, end)
    source = next((each.meta[_SPAN][0] for each in _around(node) if _SPAN in each.meta), None)
    spans = list(_spans(node, source))
    if source is None or not spans:
        return None
    return source.place(min(start for start, _ in spans), max(end for _, end in spans))


def _around(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a node, and what it is a part of."""
    yield from node.walk()
    while node.parent is not None:
        node = node.parent
        yield node


def _spans(node: exp.Expr, source: SourceText | None) -> Iterator[tuple[int, int]]:
    """The spans in a text that are known for parts of a node; sqlglot notes some by itself."""
    for part in node.walk():
        if _SPAN in part.meta:
            if part.meta[_SPAN][0] is source:
                yield part.meta[_SPAN][1:]
        elif part.meta.get("end") is not None:
            yield part.meta["start"], part.meta["end"]


def placed_as(node: Node, other: exp.Expr) -> Node:
    """A node that stands for another, at its place."""
    node.meta.update({_SPAN: other.meta[_SPAN]} if _SPAN in other.meta else {})
    return node


def unplaced(node: Node) -> Node:
    """A node of a text that the user has not written, without places."""
    for part in node.walk():
        part.meta.clear()
    return node
