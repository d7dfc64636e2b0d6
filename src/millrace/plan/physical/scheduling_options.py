"""Options of a query that schedule its operators: strategies and break nodes, for all or for named ones.

    strategy = 'dfs, merge = bfs'          depth-first, but breadth-first at its in-order unions
    breaks = 'filter#2002934bd1c0, merge'        a break node after these operators
    breaks = 'chain'                       break nodes where they free most memory

An operator is named as `explain` prints it, or by its kind for all of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from millrace.errors import RequestError

RULE = r"(?:dfs|bfs|rr|batch:[1-9]\d*)"
PART = r"[a-z_]+(?:#[0-9a-f]{12})?"


def is_strategy(text: str) -> bool:
    """True if a text is a rule, or a rule and further ones for some operators.

    >>> is_strategy("dfs"), is_strategy("dfs, merge = batch:64"), is_strategy("merge = dfs")
    (True, True, False)
    """
    return re.fullmatch(rf"{RULE}(\s*,\s*{PART}\s*=\s*{RULE})*", text.strip().lower()) is not None


def is_breaks(text: str) -> bool:
    """True if a text is none, chain, or a list of operators.

    >>> is_breaks("chain"), is_breaks("filter#2002934bd1c0, merge"), is_breaks("after lunch")
    (True, True, False)
    """
    return re.fullmatch(rf"{PART}(\s*,\s*{PART})*", text.strip().lower()) is not None


def strategy_of(operator: str, options: Mapping[str, str]) -> str:
    """The rule of an operator: the one that names it, or its kind, or that of the whole query.

    >>> strategy_of("merge#0b863a5c2f17", {"strategy": "dfs, merge = bfs"})
    'bfs'
    """
    first, *further = _pieces(options.get("strategy", "dfs"))
    rules = dict(re.split(r"\s*=\s*", each) for each in further)
    return rules.get(operator) or rules.get(_kind(operator)) or first


def breaks_after(operator: str, options: Mapping[str, str]) -> bool:
    """True if a break node stands after an operator.

    >>> breaks_after("merge#0b863a5c2f17", {"breaks": "filter, merge#0b863a5c2f17"})
    True
    """
    return bool({operator, _kind(operator)} & set(_named_breaks(options)))


def check_parts(query: str, operators: Iterable[str], options: Mapping[str, str]) -> None:
    """Refuse options that name an operator which the query does not have."""
    names = list(operators)
    known = {*names, *map(_kind, names)}
    named = [re.split(r"\s*=\s*", each)[0] for each in _pieces(options.get("strategy", "dfs"))[1:]]
    for part in (*named, *_named_breaks(options)):
        if part not in known:
            raise RequestError(
                f'query "{query}" has no operator "{part}"', hint=f"Its operators are {', '.join(names)}."
            )


def _named_breaks(options: Mapping[str, str]) -> list[str]:
    return [each for each in _pieces(options.get("breaks", "none")) if each not in ("none", "chain")]


def _pieces(text: str) -> list[str]:
    return re.split(r"\s*,\s*", text.strip())


def _kind(operator: str) -> str:
    return operator.partition("#")[0]
