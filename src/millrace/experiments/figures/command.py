"""What `millrace figures` does: it lists the figures, makes some and prints their claims, or draws some again.

A picture is drawn of the table, whose numbers have six digits: drawn again it is the same. Without matplotlib, which is
an extra, there is no picture.
"""

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

from millrace.api.terminal.status_line import StatusLine
from millrace.errors import RequestError, did_you_mean, listed
from millrace.experiments.drawing import HOW_TO_DRAW, can_draw
from millrace.experiments.figures import FIGURES
from millrace.experiments.figures.claims import Claim, value_text
from millrace.experiments.figures.curves import Measured, Results
from millrace.experiments.figures.experiment import Case, Figure, results, workers


def list_figures(*, as_json: bool = False, out: TextIO | None = None) -> int:
    """List the figures; exit code 0."""
    out = out or sys.stdout
    for figure in FIGURES.values():
        entry = {"figure": figure.name, "paper": figure.paper, "shows": figure.shows}
        out.write(json.dumps(entry) + "\n" if as_json else f"{figure.name:<20} {figure.paper:<16} {figure.shows}\n")
    return 0


def make_figures(name: str, output: Path, *, as_json: bool = False, out: TextIO | None = None) -> int:
    """Make a figure, or "all"; exit code 0 if every claim holds, except those that are known not to, else 1."""
    figures = _named(name)
    output.mkdir(parents=True, exist_ok=True)
    out = out or sys.stdout
    if not can_draw():
        sys.stderr.write(f"no picture is drawn: {HOW_TO_DRAW}\n")
    expected, known = True, dict[Case, Measured]()
    with workers() as pool:
        for figure in figures:
            began = time.monotonic()
            found = _found(figure, pool, known)
            claims = figure.claims(found)
            files = _write(figure, found, claims, output)
            report = _as_json if as_json else _as_text
            out.write(report(figure, claims, files, time.monotonic() - began))
            out.flush()
            expected = expected and all(claim.as_expected for claim in claims)
    return 0 if expected else 1


def redraw_figures(name: str, output: Path, *, out: TextIO | None = None) -> int:
    """Draw a figure, or "all", from its table in the folder; exit code 0."""
    if not can_draw():
        raise RequestError("matplotlib, which draws pictures, is not installed", hint=f"{HOW_TO_DRAW.capitalize()}.")
    for figure in _named(name):
        table = output / f"{figure.name}.csv"
        try:
            drawn = _picture(figure, table.read_text())
        except (FileNotFoundError, KeyError):
            fact = f'"{table}" is not there, or has not the columns of figure "{figure.name}"'
            raise RequestError(fact, hint=f"Make it first: millrace figures {figure.name} --output {output}") from None
        (picture := table.with_suffix(".svg")).write_text(drawn)
        (out or sys.stdout).write(f"{picture}\n")
    return 0


def _picture(figure: Figure, table: str) -> str:
    return figure.picture(figure.read(csv.DictReader(io.StringIO(table))))


def _named(name: str) -> list[Figure]:
    if name == "all":
        return list(FIGURES.values())
    if name not in FIGURES:
        known = (*FIGURES, "all")
        raise RequestError(
            f'there is no figure "{name}"', hint=f"{did_you_mean(name, known)}The figures are {listed(known)}."
        )
    return [FIGURES[name]]


def _found(figure: Figure, pool: Executor, known: dict[Case, Measured]) -> Results:
    """Run a figure with a line on standard error that tells how many of its runs are done."""
    began = time.monotonic()
    line = StatusLine(sys.stderr, began)

    def progress(done: int, of: int) -> None:
        if line.due:
            line.show(f"{figure.name}: {done} of {of} runs, {time.monotonic() - began:.0f} s")

    try:
        return results(figure, pool, known, progress)
    finally:
        line.clear()


def _write(figure: Figure, found: Results, claims: Sequence[Claim], output: Path) -> list[Path]:
    """Write the files of a figure: its table, its picture, and its claims."""
    table = table_text(figure.table(found))
    picture = {"svg": _picture(figure, table)} if can_draw() else {}
    texts = {"csv": table, **picture, "txt": claims_text(figure, claims)}
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
    """What a figure shows, and one line per claim."""
    lines = [f"{figure.name} ({figure.paper}): {figure.shows}", *(f"  {claim.verdict}  {claim}" for claim in claims)]
    return "\n".join(lines) + "\n"


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
