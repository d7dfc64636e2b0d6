"""Functions that give rows or several columns, in a select list or in LATERAL VIEW: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

GENERATORS = declared("""
explode(value ANY) ROWS
    A row per element of an array, or per key and value of a map
    explode(array('a', 'b'))
    forms: CROSS JOIN UNNEST(value) [WITH ORDINALITY]
explode_outer(value ANY) ROWS
    As explode, and one row with nulls where there is no element
    explode_outer(CAST(NULL AS ARRAY<STRING>))
posexplode(value ANY) ROWS
    As explode, with the place of each element, counted from 0
    posexplode(array('a', 'b'))
posexplode_outer(value ANY) ROWS
    As posexplode, and one row with nulls where there is no element
    posexplode_outer(array('a', 'b'))
inline(structs ARRAY) ROWS
    A row per struct of an array, with its fields as columns
    inline(array(struct(1 AS p, 'a' AS q), struct(2, 'b')))
inline_outer(structs ARRAY) ROWS
    As inline, and one row with nulls where there is no struct
    inline_outer(array(struct(1 AS p, 'a' AS q)))
json_tuple(text STRING, field STRING...) COLUMNS
    Fields of an object of JSON as texts, a column per field
    json_tuple('{"a": 1, "b": "x"}', 'a', 'b')
""")
