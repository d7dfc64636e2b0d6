"""All scalar functions, declared family by family: `FUNCTIONS` has each of them by each of its names.

    declaration        how one is declared
    differences        where they mean something else than in Spark
    argument_types     arguments brought to the types that a function takes
    text_table, number_table, time_table, interval_table, condition_table, nested_table   a file per family
    generator_table    those that give rows
    aggregate_table    the aggregates

The reference in the documentation is made of these tables, and tests run all examples here and in Spark. To add a
function, add its declaration here and its kernel in `kernel/columns/functions/`.
"""

from millrace.language.expressions.functions import (
    condition_table,
    interval_table,
    nested_table,
    number_table,
    text_table,
    time_table,
)
from millrace.language.expressions.functions.declaration import Function

FAMILIES: dict[str, tuple[Function, ...]] = {
    "Conditions": condition_table.CONDITIONS,
    "Text": text_table.TEXTS,
    "Numbers": number_table.NUMBERS,
    "Dates and times": time_table.TIMES,
    "Intervals": interval_table.INTERVALS,
    "Hashes and encodings": text_table.ENCODINGS,
    "Arrays, maps and structs": nested_table.NESTED + nested_table.ARRAYS,
}
"""The functions by the headings of the reference."""

FUNCTIONS: dict[str, Function] = {
    name: each for family in FAMILIES.values() for each in family for name in (each.name, *each.also)
}
"""The functions by name; another name of a function stands for it too."""
