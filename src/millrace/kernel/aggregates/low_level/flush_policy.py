"""When the entries of ended windows leave the table of a low-level aggregate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from millrace.errors import RequestError

FlushKind = Literal["in_order", "slow_flush", "lazy_flush"]


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """How ended windows leave a low-level table (004 section 6).

    `in_order`, the baseline: a slot is looked at for every row, and windows leave one after another (Fig. 7). With a
    `second_slot` a group that would drive an entry of the new window out, and with it all of the old one, tries the
    next slot first (footnote 1).
    `slow_flush`: one old entry leaves for every `every` rows. `lazy_flush`: only collisions evict entries. An entry
    leaves at most `delay` windows after its own has ended.
    """

    kind: FlushKind = "in_order"
    every: int = 1
    delay: int = 1
    second_slot: bool = False

    @classmethod
    def parse(cls, text: str) -> FlushPolicy:
        """The policy that an option names.

        >>> FlushPolicy.parse("slow_flush(160, 2)")
        FlushPolicy(kind='slow_flush', every=160, delay=2, second_slot=False)
        >>> FlushPolicy.parse("lazy_flush(2)")
        FlushPolicy(kind='lazy_flush', every=1, delay=2, second_slot=False)
        """
        words = "".join(text.lower().split())
        if words in ("in_order", "in_order()"):
            return cls()
        if words == "in_order(2)":
            return cls(second_slot=True)
        if found := re.fullmatch(r"slow_flush\(([1-9]\d*),(\d+)\)", words):
            return cls("slow_flush", int(found[1]), int(found[2]))
        if found := re.fullmatch(r"lazy_flush\((\d+)\)", words):
            return cls("lazy_flush", delay=int(found[1]))
        raise RequestError(
            f'option "flush" does not take "{text}"',
            hint="It takes in_order, slow_flush(i, m) for one old group every i rows, or lazy_flush(m); "
            "m is how many windows a group may stay after its own has ended.",
        )

    def __str__(self) -> str:
        given = {
            "in_order": "(2)" if self.second_slot else "",
            "slow_flush": f"({self.every}, {self.delay})",
            "lazy_flush": f"({self.delay})",
        }
        return self.kind + given[self.kind]
