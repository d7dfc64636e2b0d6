r"""Regular expressions and LIKE: Arrow's engine (RE2) for constant patterns that it reads, else Python's.

Rules:
- `\d`, `\w`, `\s` and the case of letters are those of ASCII, as in Java.
- A pattern that neither engine reads raises `pa.ArrowInvalid`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct, with_constants

_TEXT, _INT, _BOOL = pa.string(), pa.int32(), pa.bool_()
_TEXTS = pa.list_(_TEXT)
_CLASSES = {"Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "Upper": "A-Z", "Lower": "a-z", "L": r"^\W\d_"}
_GROUP = re.compile(r"\\.|\[(?:\^?\])?(?:\\.|[^\]\\])*\]|\((?!\?)|\(\?P?<(?![=!])\w+>", re.DOTALL)
_PLAIN = re.compile(r"[\w ,;:/@#%&=~'\"<>!-]+|\\[^\w]")


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    python = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    python = re.sub(r"\\p\{(?:Is)?(\w+)\}", lambda found: f"[{_CLASSES.get(found[1], found[0])}]", python)
    python = re.sub(r"(?<!\\)((?:\\\\)*)\\[zZ]", r"\1\\Z", python)
    try:
        return re.compile(python, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise pa.ArrowInvalid(f"'{pattern}' is not a regular expression: {error}") from None


@lru_cache(maxsize=512)
def _is_arrow_s(pattern: str) -> bool:
    """True if Arrow's engine reads a pattern, and finds nothing in it that the two read differently."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        _compiled(pattern)
        return False
    return "\n" not in pattern and not re.search(r"\\[pPZzGRXh]|\$", pattern)


def _rlike(text: Value, pattern: str) -> Value:
    return pc.match_substring_regex(text, pattern) if _is_arrow_s(pattern) else None


@lru_cache(maxsize=512)
def _replacement(given: str) -> str:
    r"""Java's replacement as Python's and RE2's: `$1` is `\1`, and `\$` is `$`."""
    parts = re.findall(r"\\.|\$\d|\$\{\w+\}|[^\\$]+|[\\$]", given, re.DOTALL)
    return "".join(_replacement_part(part) for part in parts)


def _replacement_part(part: str) -> str:
    if part.startswith("$") and len(part) == 2:
        return f"\\{part[1]}"
    if part.startswith("$") and len(part) > 2:
        return f"\\g<{part[2:-1]}>"
    if part in ("$", "\\"):
        raise pa.ArrowInvalid(f"a replacement has a {part} that stands for nothing")
    return (part[1] if part.startswith("\\") else part).replace("\\", "\\\\")


def _replaced(text: Value, pattern: str, replacement: str, start: int = 1) -> Value:
    if start != 1 or not _is_arrow_s(pattern) or re.search(r"\$\{", replacement) or _compiled(pattern).search(""):
        return None
    return pc.replace_substring_regex(text, pattern, _replacement(replacement))


def _replaced_one(text: str, pattern: str, replacement: str, start: int = 1) -> str:
    if start < 1:
        raise pa.ArrowInvalid("the place from which regexp_replace replaces is less than 1")
    found = _compiled(pattern)
    wanted = re.sub(r"\\(\d)", r"\\g<\1>", _replacement(replacement))
    return text[: start - 1] + found.sub(wanted, text[start - 1 :]) if start == 1 or len(text) >= start else text


def _checked_group(pattern: re.Pattern[str], group: int) -> int:
    if not 0 <= group <= pattern.groups:
        raise pa.ArrowInvalid(f"the pattern has {pattern.groups} groups, not {group}")
    return group


@lru_cache(maxsize=512)
def _with_one_group(pattern: str, wanted: int) -> str:
    """A pattern with one group, which has a name; the others no longer count."""
    count = 0

    def named(found: re.Match[str]) -> str:
        nonlocal count
        if not found[0].startswith("("):
            return found[0]
        count += 1
        return "(?P<g>" if count == wanted else "(?:"

    rest = _GROUP.sub(named, pattern)
    return rest if wanted else f"(?P<g>{rest})"


def _extracted(text: Value, pattern: str, group: int = 1) -> Value:
    _checked_group(_compiled(pattern), group)
    if not _is_arrow_s(pattern):
        return None
    found = pc.struct_field(pc.extract_regex(text, _with_one_group(pattern, group)), ["g"])
    return pc.if_else(pc.is_valid(text), pc.fill_null(found, ""), pa.scalar(None, _TEXT))


def _extracted_one(text: str, pattern: str, group: int = 1) -> str:
    compiled = _compiled(pattern)
    found = compiled.search(text)
    return (found[_checked_group(compiled, group)] or "") if found else ""


def _all_extracted(text: str, pattern: str, group: int = 1) -> list[str]:
    compiled = _compiled(pattern)
    return [found[_checked_group(compiled, group)] or "" for found in compiled.finditer(text)]


def _count(text: Value, pattern: str) -> Value:
    if not _is_arrow_s(pattern) or _compiled(pattern).search(""):
        return None
    return pc.count_substring_regex(text, pattern)


def _count_one(text: str, pattern: str) -> int:
    return sum(1 for _ in _compiled(pattern).finditer(text))


def _first(text: str, pattern: str) -> str | None:
    found = _compiled(pattern).search(text)
    return (found[0] or None) if found else None


def _place(text: str, pattern: str, group: int = 0) -> int:
    found = _compiled(pattern).search(text)
    return found.start() + 1 if found else 0


def _split(text: Value, pattern: str, limit: int = -1) -> Value:
    most = None if limit <= 0 else limit - 1
    if most == 0 or not pattern:
        return None
    if _PLAIN.fullmatch(pattern):
        return pc.split_pattern(text, pattern.removeprefix("\\"), max_splits=most)
    if not _is_arrow_s(pattern) or _compiled(pattern).search(""):
        return None
    return pc.split_pattern_regex(text, pattern, max_splits=most)


def split_one(text: str, pattern: str, limit: int = -1) -> list[str]:
    """As Java splits: an empty match at the start of a text parts nothing."""
    if not pattern and text:
        count = len(text) if limit <= 0 or limit > len(text) else limit
        return [*text[: count - 1], text[count - 1 :]] if limit > 0 and count < len(text) else list(text)
    parts: list[str] = []
    begin = 0
    for found in _compiled(pattern).finditer(text):
        if limit > 0 and len(parts) == limit - 1:
            break
        if found.end() == 0:
            continue
        parts.append(text[begin : found.start()])
        begin = found.end()
    return [*parts, text[begin:]]


@lru_cache(maxsize=512)
def _like_pattern(pattern: str, escape: str) -> str:
    """LIKE's pattern as a regular expression."""
    found, place = "", 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == escape:
            place += 1
            if place == len(pattern) or pattern[place] not in ("%", "_", escape):
                raise pa.ArrowInvalid(f"in the pattern '{pattern}' nothing that can be escaped follows '{escape}'")
            found += re.escape(pattern[place])
        else:
            found += {"%": "(?s:.*)", "_": "(?s:.)"}.get(letter) or re.escape(letter)
        place += 1
    return found


def _like(*, any_case: bool) -> Kernel:
    flags = re.IGNORECASE if any_case else re.NOFLAG

    def fast(text: Value, pattern: str, escape: str = "\\") -> Value:
        _like_pattern(pattern, escape)
        return pc.match_like(text, pattern, ignore_case=any_case) if escape == "\\" else None

    def slow(text: str, pattern: str, escape: str = "\\") -> bool:
        return re.fullmatch(_like_pattern(pattern, escape), text, flags) is not None

    return with_constants(fast, by_distinct(_BOOL)(slow))


def _regular(fast: Kernel | None, kind: pa.DataType, one: Callable[..., object]) -> Kernel:
    slow = by_distinct(kind)(one)
    return slow if fast is None else with_constants(fast, slow)


PATTERN_FUNCTIONS: dict[str, Kernel] = {
    "like": _like(any_case=False),
    "ilike": _like(any_case=True),
    "rlike": _regular(_rlike, _BOOL, lambda text, pattern: _compiled(pattern).search(text) is not None),
    "regexp_replace": _regular(_replaced, _TEXT, _replaced_one),
    "regexp_extract": _regular(_extracted, _TEXT, _extracted_one),
    "regexp_extract_all": _regular(None, _TEXTS, _all_extracted),
    "regexp_count": _regular(_count, _INT, _count_one),
    "regexp_substr": _regular(None, _TEXT, _first),
    "regexp_instr": _regular(None, _INT, _place),
    "split": _regular(_split, _TEXTS, split_one),
}
