"""A terminal in memory: what stands on it after carriage returns, colours and wrapped lines."""

from __future__ import annotations

import io
import re

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[mK]")


class Terminal(io.StringIO):
    """A stream that is a terminal of so many columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """The lines that one sees, without blanks at their ends."""
        shown = [""]
        for line in _ESCAPE.sub("", self.getvalue()).split("\n"):
            seen = ""
            for part in line.split("\r"):
                seen = part + seen[len(part) :]
            shown += [seen[at : at + self.columns].rstrip() for at in range(0, max(len(seen), 1), self.columns)]
        return shown[1:]
