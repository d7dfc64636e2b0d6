"""Colours where a terminal has them; NO_COLOR and TERM=dumb turn them off."""

from __future__ import annotations

import os
import re
from typing import TextIO

BOLD, DIM, RED, YELLOW, CYAN = "1", "2", "31", "33", "36"
_SET_ASIDE = re.compile(r"[\d,]+ (?:late|quarantined|malformed|shed|rows refused)\b")


class Colours:
    """Paints texts for one stream; for one that shows no colours they stay as they are.

    >>> import io
    >>> Colours(io.StringIO()).paint("late", YELLOW)
    'late'
    """

    def __init__(self, stream: TextIO) -> None:
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self.shown = stream.isatty() and not plain
        """True if the stream shows colours."""

    def paint(self, text: str, *codes: str) -> str:
        """A text in a colour."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.shown and text else text

    def summary(self, line: str) -> str:
        """A line of a summary: warnings, and counts of rows that were set aside, can be seen."""
        if not self.shown:
            return line
        if line.lstrip().startswith("warning:"):
            return self.paint(line, RED)
        if line.startswith("  -> "):
            return self.paint(line, BOLD)
        return _SET_ASIDE.sub(lambda found: self.paint(found[0], YELLOW), line)
