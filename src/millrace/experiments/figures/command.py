"""What `millrace figures` does: list the figures, or make some and say what they show."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TextIO

from millrace.errors import RequestError, did_you_mean, listed
from millrace.experiments.figures import FIGURES
from millrace.experiments.figures.claims import Claim, value_text
from millrace.experiments.figures.experiment import Case, Figure, Findings, Outcome, outcomes, workers

_EVERY = 5.0
"""Seconds between progress lines where they cannot be rewritten in place."""


def list_figures(*, as_json: bool = False, out: TextIO | None = None) -> int:
    """Say which figures there are; exit code 0."""
    out = out or sys.stdout
    for figure in FIGURES.values():
        entry = {"figure": figure.name, "paper": figure.paper, "shows": figure.shows}
        out.write(json.dumps(entry) + "\n" if as_json else f"{figure.name:<18} {figure.paper:<14} {figure.shows}\n")
    return 0


def make_figures(name: str, output: Path, *, as_json: bool = False, out: TextIO | None = None) -> int:
    """Make a figure, or "all"; exit code 0 if every claim holds, but for those known not to, else 1."""
    figures = _named(name)
    output.mkdir(parents=True, exist_ok=True)
    out = out or sys.stdout
    held, known = True, dict[Case, Outcome]()
    with workers() as pool:
        for figure in figures:
            began = time.monotonic()
            found = _made(figure, pool, known)
            files = _written(figure, found, output)
            say = _as_json if as_json else _as_text
            out.write(say(figure, found.claims, files, time.monotonic() - began))
            out.flush()
            held = held and all(claim.as_expected for claim in found.claims)
    return 0 if held else 1


def _named(name: str) -> list[Figure]:
    if name == "all":
        return list(FIGURES.values())
    if name not in FIGURES:
        known = (*FIGURES, "all")
        raise RequestError(
            f'there is no figure "{name}"', hint=f"{did_you_mean(name, known)}The figures are {listed(known)}."
        )
    return [FIGURES[name]]


def _made(figure: Figure, pool: Executor, known: dict[Case, Outcome]) -> Findings:
    progress = Progress(figure.name)
    try:
        return figure.findings(outcomes(figure, pool, known, progress.told))
    finally:
        progress.end()


def _written(figure: Figure, found: Findings, output: Path) -> list[Path]:
    """The files of a figure: its table, its picture, and its claims."""
    texts = {"csv": table_text(found.table), "svg": found.picture.svg(), "txt": claims_text(figure, found.claims)}
    files = [output / f"{figure.name}.{ending}" for ending in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.write_text(text)
    return files


def table_text(rows: Sequence[dict[str, object]]) -> str:
    """A table as csv; numbers to six digits.

    >>> table_text([{"curve": "A", "seconds": 0.1234567}])
    'curve,seconds\\nA,0.123457\\n'
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()} for row in rows
    )
    return text.getvalue()


def claims_text(figure: Figure, claims: Sequence[Claim]) -> str:
    """What a figure shows, and a line for each of its claims."""
    lines = [f"{figure.name} ({figure.paper}): {figure.shows}"]
    return "\n".join([*lines, *(f"  {claim.verdict}  {claim}" for claim in claims)]) + "\n"


def _as_text(figure: Figure, claims: Sequence[Claim], files: Sequence[Path], seconds: float) -> str:
    return f"{claims_text(figure, claims)}  {', '.join(map(str, files))} ({seconds:.0f} s)\n"


def _as_json(figure: Figure, claims: Sequence[Claim], files: Sequence[Path], seconds: float) -> str:
    made = {
        "figure": figure.name,
        "paper": figure.paper,
        "holds": all(claim.holds for claim in claims),
        "as_expected": all(claim.as_expected for claim in claims),
        "claims": [
            {
                "says": claim.says,
                "measured": claim.measured,
                "text": value_text(claim.measured, claim.unit),
                "expected": claim.range_text(),
                "holds": claim.holds,
                "reproduces": claim.reproduces,
            }
            for claim in claims
        ],
        "files": [str(file) for file in files],
        "seconds": round(seconds, 1),
    }
    return json.dumps(made) + "\n"


class Progress:
    """A line on standard error that tells how many runs of a figure are done."""

    def __init__(self, name: str, err: TextIO | None = None) -> None:
        self.name = name
        self.err = err or sys.stderr
        self._live = self.err.isatty()
        self._began = self._shown = time.monotonic()
        self._line = ""

    def told(self, done: int, of: int) -> None:
        """So many runs are done."""
        now = time.monotonic()
        line = f"{self.name}: {done} of {of} runs, {now - self._began:.0f} s"
        if self._live:
            self.err.write(f"\r{line:<{len(self._line)}}")
            self._line = line
        elif now - self._shown >= _EVERY:
            self._shown = now
            self.err.write(f"{line}\n")
        self.err.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._line:
            self.err.write(f"\r{'':<{len(self._line)}}\r")
