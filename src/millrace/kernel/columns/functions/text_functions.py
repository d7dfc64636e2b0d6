"""Functions of text: Arrow's kernels where the arguments after the text are constants, else distinct rows in Python.

Rules:
- Characters are code points, and places are counted from 1, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value, cast
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct, with_constants
from millrace.kernel.columns.functions.edit_distance import levenshtein
from millrace.kernel.columns.nested.nested_columns import lengths_of, list_of, over_columns

_TEXT, _INT, _BOOL = pa.string(), pa.int32(), pa.bool_()
_FEW = 20
"""So many letters are replaced one after the other over a column in less time than all at once text by text."""

_BECOME_SEVERAL = r"ßŉǰΐΰև\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFC}\x{FB00}-\x{FB17}"
"""Letters, and ranges that have them, of which upper case makes more than one."""


def _slice(text: Any, start: int, length: int = 2**31) -> Any:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    stop = begin + max(length, 0)
    return text[max(begin, 0) : max(stop, 0)]


def substring(text: Value, *span: Value) -> Value:
    """Part of texts or bytes; a negative start counts from the end."""
    return with_constants(_constant_slice, by_distinct(text.type)(_slice))(text, *span)


def _constant_slice(text: Value, start: int, length: int | None = None) -> Value:
    cut = pc.binary_slice if pa.types.is_binary(text.type) else pc.utf8_slice_codeunits
    begin = start - 1 if start > 0 else start
    stop = None if length is None else begin + max(0, length)
    return cut(text, begin) if stop is None or begin < 0 <= stop else cut(text, begin, stop)


def _trimmed(name: str) -> Kernel:
    """`trim`, `ltrim` or `rtrim`, of spaces or of given characters."""
    of_text = {"trim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}[name]
    kernel = getattr(pc, f"utf8_{name}")
    return with_constants(
        lambda text, characters=" ": kernel(text, characters=characters) if characters else text,
        by_distinct(_TEXT)(lambda text, characters=" ": of_text(text, characters) if characters else text),
    )


def _padded(text: str, length: int, pad: str, *, left: bool) -> str:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return text[: max(length, 0)]
    filling = (pad * (missing // len(pad) + 1))[:missing]
    return filling + text if left else text + filling


def _pad(*, left: bool) -> Kernel:
    kernel = pc.utf8_lpad if left else pc.utf8_rpad

    def fast(text: Value, length: int, pad: str = " ") -> Value:
        if len(pad) != 1 or length <= 0:
            return None
        return kernel(pc.utf8_slice_codeunits(text, 0, length), length, pad)

    return with_constants(fast, by_distinct(_TEXT)(lambda text, length, pad=" ": _padded(text, length, pad, left=left)))


def _located(part: str | None, text: str | None, start: int | None = 1) -> int | None:
    if part is None or text is None:
        return None if start is not None else 0
    if start is None or start < 1:
        return 0
    # As in Java, nothing is found at once wherever one begins.
    return text.find(part, start - 1) + 1 if part else 1


def _locate(part: Value, text: Value, start: Value | None = None) -> Value:
    """The place of a part; by Arrow where the text is ASCII, in which bytes are characters."""
    slow = by_distinct(_INT, nulls=True)(_located)
    constant = isinstance(part, pa.Scalar) and part.is_valid and start is None and not isinstance(text, pa.Scalar)
    if not constant or not pc.all(pc.string_is_ascii(text)).as_py():
        return slow(part, text) if start is None else slow(part, text, start)
    return pc.add(pc.find_substring(text, part.as_py()), pa.scalar(1, _INT))


def _constant_part(text: Value, delimiter: str, part: int) -> Value:
    if not delimiter or part < 1:
        return None
    lists = pc.split_pattern(text, delimiter)
    lengths = np.asarray(lengths_of(lists))
    known = np.asarray(lists.is_valid())
    there = known & (lengths >= part)
    found = lists.flatten().take(pa.array(np.cumsum(lengths) - lengths + part - 1, mask=~there))
    return pc.if_else(pa.array(known & ~there), "", found)


def _index_part(text: str, delimiter: str, count: int) -> str:
    """The text before so many delimiters; from the end if the number is negative."""
    if not count or not delimiter:
        return ""
    place = -1 if count > 0 else len(text)
    for _ in range(abs(count)):
        place = text.find(delimiter, place + 1) if count > 0 else text.rfind(delimiter, 0, place + len(delimiter) - 1)
        if place < 0:
            return text
    return text[:place] if count > 0 else text[place + len(delimiter) :]


def _split_part(text: str, delimiter: str, part: int) -> str:
    if not part:
        raise pa.ArrowInvalid("the part of split_part is 0: parts are counted from 1")
    parts = text.split(delimiter) if delimiter else [text]
    return parts[part - 1 if part > 0 else part] if abs(part) <= len(parts) else ""


def _overlaid(text: Any, replacement: Any, start: int, length: int = -1) -> Any:
    length = length if length >= 0 else len(replacement)
    return _slice(text, 1, start - 1) + replacement + _slice(text, start + length)


def _overlay(text: Value, *others: Value) -> Value:
    return by_distinct(text.type)(_overlaid)(text, *others)


def _translated_all(text: Value, given: str, wanted: str) -> Value:
    """Letter by letter, where none becomes one of the others."""
    pairs = dict(reversed([(letter, wanted[place : place + 1]) for place, letter in enumerate(given)]))
    if len(pairs) > _FEW or set(pairs) & set(pairs.values()):
        return None
    return reduce(lambda column, pair: pc.replace_substring(column, *pair), pairs.items(), text)


def _translated(text: str, given: str, wanted: str) -> str:
    table: dict[int, str | None] = {}
    for place, letter in enumerate(given):
        table.setdefault(ord(letter), wanted[place] if place < len(wanted) else None)
    return text.translate(table)


_SOUNDS = {
    **dict.fromkeys("BFPV", "1"), **dict.fromkeys("CGJKQSXZ", "2"), **dict.fromkeys("DT", "3"), "L": "4",
    **dict.fromkeys("MN", "5"), "R": "6",
}  # fmt: skip


def _soundex(text: str) -> str:
    upper = "".join(letter.upper() if letter.isascii() else letter for letter in text)
    if not text or not ("A" <= upper[0] <= "Z"):
        return text
    code, last = upper[0], _SOUNDS.get(upper[0], "0")
    for letter in upper[1:]:
        sound = _SOUNDS.get(letter, "0" if "A" <= letter <= "Z" else "")
        if letter in "HW":
            continue
        if sound not in ("", "0", last):
            code += sound
        last = sound or "0"
    return f"{code:0<4}"[:4]


def _place_in_set(text: Value, texts: str) -> Value:
    parts = texts.split(",")
    distinct = dict.fromkeys(parts)
    places = pa.array([parts.index(each) + 1 for each in distinct], _INT)
    found = places.take(pc.index_in(text, pa.array(list(distinct), _TEXT)))
    return pc.if_else(pc.is_valid(text), pc.fill_null(found, 0), pa.scalar(None, _INT))


_code = by_distinct(_INT)(lambda letter: ord(letter) if letter else 0)


def _cased(kernel: Kernel, of_text: Callable[[str], str], letters: str) -> Kernel:
    """Arrow's kernel, which makes one letter of one letter; Python's own for texts with letters that become several.

    So does a sigma, which is another letter at the end of a word.
    """
    slow = by_distinct(_TEXT)(of_text)

    def compute(text: Value) -> Value:
        if isinstance(text, pa.Scalar):
            return slow(text)
        special = pc.fill_null(pc.match_substring_regex(text, f"[{letters}]"), False)
        if not pc.any(special).as_py():
            return kernel(text)
        return pc.replace_with_mask(kernel(text), special, slow(pc.filter(text, special)))

    return compute


def _title(text: str) -> str:
    words = text.split(" ")
    return " ".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in words)


def _luhn(text: str) -> bool:
    if not text.isdigit() or not text.isascii():
        return False
    digits = [int(each) for each in reversed(text)]
    return sum(each if place % 2 == 0 else sum(divmod(2 * each, 10)) for place, each in enumerate(digits)) % 10 == 0


def _concat_ws(separator: Value, *values: Value) -> Value:
    """Texts, and the elements of arrays, that are not null, with a separator between them."""
    if not values:
        return pc.if_else(pc.is_valid(separator), "", pa.scalar(None, _TEXT))
    parts = [_joined(separator, each) if pa.types.is_list(each.type) else cast(each, _TEXT) for each in values]
    # Arrow leaves out the rows in which all is null.
    nothing = reduce(pc.and_, (pc.is_null(each) for each in parts))
    parts[0] = pc.if_else(nothing, "", parts[0])
    found = pc.binary_join_element_wise(*parts, pc.fill_null(separator, ""), null_handling="skip")
    return pc.if_else(pc.is_valid(separator), found, pa.scalar(None, _TEXT))


def _joined(separator: Value, lists: Value) -> Value:
    """The elements of arrays that are not null with a separator between them; null where there are none."""
    found = join_elements(lists, separator)
    return pc.if_else(pc.equal(over_columns(_valid_counts)(lists), 0), pa.scalar(None, _TEXT), found)


def _valid_counts(lists: pa.Array) -> pa.Array:
    return lengths_of(without_nulls(lists))


@over_columns
def without_nulls(lists: pa.Array) -> pa.Array:
    """Arrays without the elements that are null."""
    flat = lists.flatten()
    valid = flat.is_valid()
    lengths = list_of(lengths_of(lists), pc.cast(valid, pa.int64()), pa.list_(pa.int64()), lists.is_null())
    counts = [0] * len(lists) if not len(flat) else sums_of(lengths)
    return list_of(pa.array(counts, pa.int64()), flat.filter(valid), lists.type, lists.is_null())


def sums_of(lists: pa.Array) -> Any:
    """The sum of each array of whole numbers."""
    ends = np.cumsum(np.asarray(lengths_of(lists)))
    totals = np.concatenate([[0], np.cumsum(np.asarray(lists.flatten()))])
    return totals[ends] - totals[ends - np.asarray(lengths_of(lists))]


@over_columns
def join_elements(lists: pa.Array, separator: pa.Array, null: pa.Array | None = None) -> pa.Array:
    """The elements of arrays as one text; nulls are left out, or written as another text."""
    texts = cast(lists, pa.list_(_TEXT))
    if null is None:
        return pc.binary_join(without_nulls(texts), separator)
    owners = pa.array([], pa.int64()) if not len(texts) else pc.list_parent_indices(texts)
    filled = pc.coalesce(texts.flatten(), null.take(owners))
    missing = pc.or_(texts.is_null(), null.is_null())
    return pc.if_else(
        missing, pa.scalar(None, _TEXT), pc.binary_join(list_of(lengths_of(texts), filled, texts.type), separator)
    )


TEXT_FUNCTIONS: dict[str, Kernel] = {
    "lower": _cased(pc.utf8_lower, str.lower, "Σİ"),
    "upper": _cased(pc.utf8_upper, str.upper, _BECOME_SEVERAL),
    "substring": substring,
    "trim": _trimmed("trim"),
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "replace": with_constants(
        lambda text, old, new="": pc.replace_substring(text, old, new) if old else text,
        by_distinct(_TEXT)(lambda text, old, new="": text.replace(old, new) if old else text),
    ),
    "startswith": with_constants(pc.starts_with, by_distinct(_BOOL)(str.startswith)),
    "endswith": with_constants(pc.ends_with, by_distinct(_BOOL)(str.endswith)),
    "contains": with_constants(pc.match_substring, by_distinct(_BOOL)(lambda text, part: part in text)),
    "lpad": _pad(left=True),
    "rpad": _pad(left=False),
    "locate": _locate,
    "substring_index": by_distinct(_TEXT)(_index_part),
    "split_part": with_constants(_constant_part, by_distinct(_TEXT)(_split_part)),
    "overlay": _overlay,
    "translate": with_constants(_translated_all, by_distinct(_TEXT)(_translated)),
    "levenshtein": levenshtein,
    "soundex": by_distinct(_TEXT)(_soundex),
    "initcap": by_distinct(_TEXT)(_title),
    "luhn_check": by_distinct(_BOOL)(_luhn),
    "ascii": lambda text: _code(pc.utf8_slice_codeunits(text, 0, 1)),
    "chr": by_distinct(_TEXT)(lambda code: chr(code % 256) if code >= 0 else ""),
    "right": with_constants(
        lambda text, count: pc.utf8_slice_codeunits(text, -count) if count > 0 else None,
        by_distinct(_TEXT)(lambda text, count: text[-count:] if count > 0 else ""),
    ),
    "find_in_set": with_constants(
        _place_in_set,
        by_distinct(_INT)(
            lambda text, texts: texts.split(",").index(text) + 1 if "," not in text and text in texts.split(",") else 0
        ),
    ),
    "repeat": lambda text, times: pc.binary_repeat(text, pc.max_element_wise(times, 0, skip_nulls=False)),
    "octet_length": lambda text: pc.cast(pc.binary_length(text), _INT),
    "reverse_text": pc.utf8_reverse,
    "concat_bytes": lambda *parts: pc.binary_join_element_wise(*parts, b""),
    "concat_ws": _concat_ws,
    "array_join": join_elements,
}
