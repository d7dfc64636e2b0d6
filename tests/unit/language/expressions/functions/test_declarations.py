"""The tables of functions: each declaration is whole, and its example has the type that it names."""

from __future__ import annotations

import pyarrow as pa

from millrace.kernel.columns.sql_types import sql_name
from millrace.language import bind_expression
from millrace.language.expressions.functions import FAMILIES, FUNCTIONS

ROW = pa.RecordBatch.from_pylist([{"one": 1}])
OPEN = ("ANY", "T", "TEXT", "NUMBER", "WHOLE", "ARRAY", "ARRAY<T>", "MAP", "STRUCT")
DECLARED = [each for family in FAMILIES.values() for each in family]


def test_the_example_of_a_function_calls_it_and_has_the_type_that_is_declared() -> None:
    wrong = []
    for function in DECLARED:
        found = sql_name(bind_expression(function.example, ROW.schema).over(ROW).type)
        if not function.example.startswith(f"{function.name}(") or function.returns not in (found, *OPEN):
            wrong.append((function.example, found, function.returns))
    assert wrong == []


def test_a_function_is_declared_once_under_each_of_its_names() -> None:
    names = [name for each in DECLARED for name in (each.name, *each.also)]
    assert sorted(names) == sorted(FUNCTIONS)
    assert all(each.about and not each.about.endswith(".") for each in DECLARED)
