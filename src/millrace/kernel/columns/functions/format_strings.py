"""`format_string` with Java's patterns, and `format_number`; computed once for each distinct row of arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value, cast
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct
from millrace.kernel.columns.functions.number_functions import WIDE

_PART = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")


@lru_cache(maxsize=256)
def _parts(pattern: str) -> tuple[str | re.Match[str], ...]:
    found: list[str | re.Match[str]] = []
    end = 0
    for each in _PART.finditer(pattern):
        found += [pattern[end : each.start()], each]
        end = each.end()
    rest = pattern[end:]
    if "%" in rest or any(isinstance(each, str) and "%" in each for each in found):
        raise pa.ArrowInvalid(f"'{pattern}' is not a pattern of format_string")
    return (*found, rest)


def _formatted(widths: Sequence[int], pattern: str | None, *values: Any) -> str | None:
    if pattern is None:
        return None
    place, text = 0, ""
    for part in _parts(pattern):
        if isinstance(part, str):
            text += part
            continue
        position, flags, width, digits, letter = part.groups()
        if letter in "n%":
            text += "\n" if letter == "n" else f"{'%':{'<' if '-' in flags else '>'}{width or ''}}"
            continue
        if position is None and "<" not in flags:
            place += 1
        which = int(position) if position else place
        if not 1 <= which <= len(values):
            raise pa.ArrowInvalid(f"'{pattern}' has more places than there are values")
        value = values[which - 1]
        if letter in "xXo" and isinstance(value, int) and not isinstance(value, bool):
            value %= 2 ** widths[which - 1]
        text += _written(value, flags, int(width or 0), None if digits is None else int(digits), letter)
    return text


def _written(value: Any, flags: str, width: int, digits: int | None, letter: str) -> str:
    text = _plain(value, flags, digits, letter.lower())
    if letter.isupper():
        text = text.upper()
    if "0" in flags and value is not None and text[-1:].isalnum() and letter.lower() in "doxfeg":
        sign = text[: text[:1] in "+-( "]
        return sign + text[len(sign) :].rjust(width - len(sign), "0")
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _plain(value: Any, flags: str, digits: int | None, letter: str) -> str:
    if letter == "s":
        text = "null" if value is None else _text(value)
        return text if digits is None else text[:digits]
    if letter == "b":
        return str(value if isinstance(value, bool) else value is not None).lower()
    if value is None:
        return "null"[:digits]
    if letter == "c":
        return chr(value) if isinstance(value, int) else str(value)
    if letter in "dxo":
        return _whole(value, flags, letter)
    if letter in "feg":
        return _fraction(value, flags, 6 if digits is None else digits, letter)
    raise pa.ArrowInvalid(f'format_string has no "%{letter}" for such a value')


def _text(value: Any) -> str:
    return (
        str(cast(pa.scalar(value), pa.string()).as_py())
        if isinstance(value, float)
        else (str(value).lower() if isinstance(value, bool) else str(value))
    )


def _whole(value: Any, flags: str, letter: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise pa.ArrowInvalid(f'format_string has no "%{letter}" for a value that is no whole number')
    if letter != "d":
        prefix = {"x": "0x", "o": "0"}[letter] if "#" in flags else ""
        return f"{prefix}{value:{letter}}"
    return _signed(f"{abs(value):{',' if ',' in flags else ''}}", value < 0, flags)


def _fraction(value: Any, flags: str, digits: int, letter: str) -> str:
    if isinstance(value, bool) or not isinstance(value, float | Decimal):
        raise pa.ArrowInvalid(f'format_string has no "%{letter}" for a value that is no fraction')
    if value != value or abs(value) == float("inf"):
        return "NaN" if value != value else _signed("Infinity", value < 0, flags)
    exact = abs(Decimal(repr(value)) if isinstance(value, float) else value)
    return _signed(_digits(exact, "," in flags, digits, letter), str(value).startswith("-"), flags)


def _digits(exact: Decimal, grouped: bool, digits: int, letter: str) -> str:
    """A number rounded half up, as Java writes it."""
    if letter == "g":
        digits = max(digits, 1)
        in_range = Decimal("0.0001") <= exact < Decimal(10) ** digits or not exact
        letter, digits = ("f", digits - 1 - (exact.adjusted() if exact else 0)) if in_range else ("e", digits - 1)
    if letter == "e":
        power = exact.adjusted() if exact else 0
        rounded = exact.scaleb(-power).quantize(Decimal(1).scaleb(-digits), "ROUND_HALF_UP", WIDE)
        if rounded >= 10:
            power, rounded = power + 1, (rounded / 10).quantize(Decimal(1).scaleb(-digits))
        return f"{rounded:f}e{'-' if power < 0 else '+'}{abs(power):02}"
    return f"{exact.quantize(Decimal(1).scaleb(-digits), 'ROUND_HALF_UP', WIDE):{',' if grouped else ''}f}"


def _signed(text: str, negative: bool, flags: str) -> str:
    if negative:
        return f"({text})" if "(" in flags else f"-{text}"
    return f"+{text}" if "+" in flags else f" {text}" if " " in flags else text


def _number(value: Any, digits: int) -> str | None:
    """A number with commas, rounded half to even."""
    if digits < 0:
        return None
    if value != value or abs(value) == float("inf"):
        return "NaN" if value != value else "-∞" if value < 0 else "∞"
    exact = Decimal(value)
    size = Decimal(1).scaleb(-digits)
    rounded = exact.quantize(size, ROUND_HALF_EVEN, WIDE)
    return f"{rounded:,f}"


def _format_string(pattern: Value, *values: Value) -> Value:
    plain = [cast(each, pa.string()) if pa.types.is_temporal(each.type) else each for each in values]
    if isinstance(pattern, pa.Scalar) and pattern.is_valid and (parts := _plain_parts(pattern.as_py(), plain)):
        return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="null")
    widths = [each.type.bit_width if pa.types.is_integer(each.type) else 0 for each in plain]
    return by_distinct(pa.string(), nulls=True)(partial(_formatted, widths))(pattern, *plain)


def _plain_parts(pattern: str, values: Sequence[Value]) -> list[Value] | None:
    """The texts between %s and %d, and the texts and whole numbers in their places; None if there is more to it."""
    texts = re.split("%[sd]", pattern)
    kinds = {"s": lambda kind: pa.types.is_string(kind) or pa.types.is_integer(kind), "d": pa.types.is_integer}
    letters = re.findall("%([sd])", pattern)
    if "%" in "".join(texts) or len(letters) != len(values):
        return None
    if not all(kinds[letter](each.type) for letter, each in zip(letters, values, strict=True)):
        return None
    given = [cast(each, pa.string()) for each in values]
    return [texts[0], *chain.from_iterable(zip(given, texts[1:], strict=True))]


FORMAT_FUNCTIONS: dict[str, Kernel] = {
    "format_string": _format_string,
    "format_number": by_distinct(pa.string())(_number),
}
