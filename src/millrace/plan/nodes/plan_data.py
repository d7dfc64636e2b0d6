"""A network as plain data (JSON): what a checkpoint keeps of a plan, and what other processes build it from again.

Rules:
- Data names only classes of a closed list: nodes, expressions, and what they are made of. Reading it imports nothing
  and runs no code; a user's functions are in it by name alone.
- What occurs twice is written once, so that it is one object again, and a plan does not grow when it is shared.
- Values come back as they were: tuples as tuples, types and schemas as Arrow's.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from types import ModuleType
from typing import Any

import pyarrow as pa

from millrace.kernel.aggregates.functions import user_aggregates
from millrace.kernel.columns import expressions, lambdas, user_functions
from millrace.kernel.joins import sides
from millrace.kernel.progress import time_contract
from millrace.kernel.updates import queue_settings
from millrace.plan.nodes import (
    aggregate_nodes,
    endpoints,
    join_nodes,
    query_network,
    relational_nodes,
    table_nodes,
    update_nodes,
)

_MODULES = (
    aggregate_nodes,
    endpoints,
    expressions,
    join_nodes,
    lambdas,
    query_network,
    queue_settings,
    relational_nodes,
    sides,
    table_nodes,
    time_contract,
    update_nodes,
    user_aggregates,
    user_functions,
)


def _classes(module: ModuleType) -> Iterator[type]:
    """The dataclasses that a module defines."""
    for found in vars(module).values():
        if isinstance(found, type) and is_dataclass(found) and found.__module__ == module.__name__:
            yield found


CLASSES = {kind.__name__: kind for module in _MODULES for kind in _classes(module)}
"""All classes that the data of a plan may name."""

_VALUES: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: (lambda value: base64.b64encode(value).decode(), base64.b64decode),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    Decimal: (str, Decimal),
    pa.Schema: (
        lambda schema: base64.b64encode(schema.serialize()).decode(),
        lambda text: pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))),
    ),
}
"""How further values become text, and are made of it again."""
_BY_NAME = {kind.__name__: kind for kind in _VALUES}
_PLAIN = (type(None), bool, int, float, str)


def data_of(value: Any, further: Mapping[str, type] | None = None) -> dict[str, Any]:
    """A value as data; `further` are classes that it may hold beside those of a plan.

    >>> from millrace.kernel.columns.expressions import Column
    >>> data_of((Column("k"), Column("k"), 7))
    {'parts': [['Column', ['k']], ['tuple', [{'part': 0}, {'part': 0}, 7]]], 'whole': {'part': 1}}
    """
    writer = _Writer({**CLASSES, **(further or {})})
    whole = writer.written(value)
    return {"parts": writer.parts, "whole": whole}


def value_of(data: Mapping[str, Any], further: Mapping[str, type] | None = None) -> Any:
    """The value that data was made of; KeyError or TypeError if it names what this version does not have.

    >>> value_of({"parts": [["Column", ["k"]], ["tuple", [{"part": 0}, 7]]], "whole": {"part": 1}})
    (Column(name='k'), 7)
    """
    classes, parts = {**CLASSES, **(further or {})}, list[Any]()

    def read(item: Any) -> Any:
        return parts[item["part"]] if isinstance(item, dict) else item

    for kind, content in data["parts"]:
        if kind in _BY_NAME:
            parts.append(_VALUES[_BY_NAME[kind]][1](content))
            continue
        values = [read(each) for each in content]
        match kind:
            case "tuple":
                parts.append(tuple(values))
            case "list":
                parts.append(values)
            case "dict":
                parts.append(dict(zip(values[::2], values[1::2], strict=True)))
            case "type":
                parts.append(values[0].field(0).type)
            case _:
                parts.append(_made(classes[kind], values))
    return read(data["whole"])


def _made(kind: type, values: list[Any]) -> Any:
    names = [each.name for each in fields(kind) if each.init]
    if len(names) != len(values):
        raise TypeError(f'"{kind.__name__}" has {len(names)} fields, and the data {len(values)}')
    return kind(**dict(zip(names, values, strict=True)))


class _Writer:
    def __init__(self, classes: Mapping[str, type]) -> None:
        self.parts: list[Any] = []
        self._classes = classes
        self._seen: dict[int, tuple[int, Any]] = {}
        self._equal: dict[tuple[str, str], int] = {}

    def written(self, value: Any) -> Any:
        """A plain value as it is; of any other value, where its part stands."""
        if type(value) in _PLAIN:
            return value
        if id(value) not in self._seen:
            # The value is kept, so that its id stays its own.
            self._seen[id(value)] = self._added(*self._content(value)), value
        return {"part": self._seen[id(value)][0]}

    def _added(self, kind: str, content: Any) -> int:
        # Types and names repeat as equal objects, not as the same ones.
        place = self._equal.setdefault((kind, repr(content)), len(self.parts))
        if place == len(self.parts):
            self.parts.append([kind, content])
        return place

    def _content(self, value: Any) -> tuple[str, Any]:
        kind = type(value)
        if kind in _VALUES:
            return kind.__name__, _VALUES[kind][0](value)
        if isinstance(value, pa.DataType):
            return "type", [self.written(pa.schema([("", value)]))]
        if self._classes.get(kind.__name__) is kind:
            return kind.__name__, [self.written(getattr(value, each.name)) for each in fields(value) if each.init]
        if isinstance(value, Mapping):
            return "dict", [self.written(each) for pair in value.items() for each in pair]
        assert kind in (tuple, list), f"{kind.__name__} cannot be part of a plan"
        return kind.__name__, [self.written(each) for each in value]
