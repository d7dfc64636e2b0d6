"""A strict reader of Prometheus text, by the description of the format and what promtool complains about."""

from __future__ import annotations

import re

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)')
_LINE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|Inf)|NaN)$")
_UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parse(text: str) -> Series:
    """The value of every series by name and labels; an assertion says what is wrong with the text."""
    assert text.endswith("\n")
    helps: dict[str, str] = {}
    kinds: dict[str, str] = {}
    found: Series = {}
    current = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, name, said = line.split(" ", 3)
            assert name not in helps and said.strip(), line
            helps[name] = said
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            # The type comes once, before the samples, and families are not interleaved.
            assert name in helps and name not in kinds and kind in ("counter", "gauge"), line
            assert name.endswith("_total") == (kind == "counter"), line
            current, kinds[name] = name, kind
        else:
            key, value = _sample(line)
            assert key[0] == current, f"{line}: not below its type"
            assert key not in found, f"{line}: twice"
            assert kinds[current] != "counter" or value >= 0, line
            found[key] = value
    assert set(helps) == set(kinds)
    return found


def _sample(line: str) -> tuple[tuple[str, frozenset[tuple[str, str]]], float]:
    match = _LINE.fullmatch(line)
    assert match, line
    name, labels, value = match.groups()
    pairs, place = [], 0
    while labels and place < len(labels):
        one = _LABEL.match(labels, place)
        assert one, line
        pairs.append((one[1], re.sub(r'\\\\|\\"|\\n', lambda each: _UNESCAPED[each[0]], one[2])))
        place = one.end()
    assert len({label for label, _ in pairs}) == len(pairs), line
    return (name, frozenset(pairs)), float(value)


def value(series: Series, name: str, **labels: str) -> float:
    """One series."""
    return series[name, frozenset(labels.items())]
