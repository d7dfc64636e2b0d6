"""How a scalar function is declared: a signature, what it gives in one line, and an example.

    split_part(text STRING, delimiter STRING, part INT) STRING
        A part of a text between delimiters, counted from 1, from the end if it is negative
        split_part('a.b.c', '.', 2)

Further lines may be `also: other names`, `kernel: the kernel's name for it`, `means: what it stands for` if it is no
function of the kernel, and `forms: other ways to write it`.

A signature reads `name(argument KIND, ...) RESULT`. Arguments in brackets may be left out, and the last one may be
repeated (`KIND...`). The kinds:

    STRING INT BIGINT DOUBLE BOOLEAN BINARY DATE TIMESTAMP   other values are cast to it, as Spark does
    TEXT       STRING or BINARY as it is, others as STRING
    NUMBER     a number as it is, text as DOUBLE
    TIME       a DATE or a TIMESTAMP as it is, text as TIMESTAMP
    DAY        a DATE or a TIMESTAMP as it is, text as DATE
    WHOLE      an integer as it is, other numbers and text as BIGINT
    ANY        any value as it is
    T          any value, brought to one type with all other T of the call; ARRAY<T> is an array of them
    ARRAY MAP STRUCT                                         any array, map or struct
    UNIT       a word or a text that names a unit of time
    FUNCTION   x -> expression
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

ANY_NUMBER = 1_000
_SIGNATURE = re.compile(r"(\w+)\((.*)\) ([^)]+(?:\(.*\))?[^)]*)")
_PARAMETER = re.compile(r"(\[?),? ?(\w+) ([\w<>]+)(\.\.\.)?(\]?)")


def declared(text: str) -> tuple[Function, ...]:
    """The functions that a text declares.

    >>> (found,) = declared('''
    ... nvl(value T, otherwise T) T
    ...     The value, or another one where it is null
    ...     nvl(NULL, 0)
    ...     also: ifnull
    ...     kernel: coalesce
    ... ''')
    >>> found.name, found.returns, found.kinds(2), found.least, found.most, found.function, found.also
    ('nvl', 'T', ['T', 'T'], 2, 2, 'coalesce', ('ifnull',))
    """
    return tuple(_declared(each.splitlines()) for each in re.split(r"\n(?=\w)", text.strip()))


def _declared(lines: list[str]) -> Function:
    signature, about, example, *others = (line.strip() for line in lines)
    given = dict(line.split(": ", 1) for line in others)
    also = tuple(given.pop("also", "").replace(",", " ").split())
    return Function(signature, about, example, also=also, **given)


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a function."""

    name: str
    kind: str
    optional: bool = False
    repeated: bool = False


@dataclass(frozen=True)
class Function:
    """A scalar function of SQL."""

    signature: str
    about: str
    """What it gives, in one line that ends without a stop."""
    example: str
    """An expression without columns that calls it."""
    kernel: str = ""
    """The kernel's name for it, if that is another one."""
    also: tuple[str, ...] = ()
    """Its other names."""
    means: str = ""
    """The expression over the names of its arguments that it stands for, if it is no function of the kernel."""
    forms: str = ""
    """Other ways to write it."""

    @cached_property
    def name(self) -> str:
        return self._parts[0]

    @cached_property
    def returns(self) -> str:
        return self._parts[2]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        text = self._parts[1]
        found = _PARAMETER.finditer(text)
        return tuple(Parameter(each[2], each[3], "[" in text[: each.start(2)], bool(each[4])) for each in found)

    @property
    def form(self) -> str:
        """How it is called, as a sentence."""
        return f"It is called as {self.name}({self._parts[1]})."

    @property
    def function(self) -> str:
        """The kernel's name for it."""
        return self.kernel or self.name

    @property
    def least(self) -> int:
        """How many arguments it takes at least."""
        return sum(not each.optional for each in self.parameters)

    @property
    def most(self) -> int:
        """How many arguments it takes at most."""
        return ANY_NUMBER if any(each.repeated for each in self.parameters) else len(self.parameters)

    def kinds(self, count: int) -> list[str]:
        """The kinds of so many arguments."""
        found = [each.kind for each in self.parameters]
        return found[:count] + found[-1:] * (count - len(found))

    @cached_property
    def _parts(self) -> tuple[str, str, str]:
        found = _SIGNATURE.fullmatch(self.signature)
        assert found is not None, self.signature
        return found[1], found[2], found[3]
