"""Arrays, maps, structs and JSON: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

NESTED = declared("""
array([element T...]) ARRAY<T>
    An array of the elements
    array(1, 2, 3)
map(key ANY, value ANY[, further ANY...]) MAP
    A map of keys, each before its value
    map('a', 1, 'b', 2)
struct(field ANY...) STRUCT
    A struct of values, named after columns or by AS
    struct(1 AS a, 'x' AS b)
named_struct(name STRING, value ANY[, further ANY...]) STRUCT
    A struct of names, each before its value
    named_struct('a', 1, 'b', 'x')
size(nested ANY) INT
    How many elements an array or a map has; -1 for null
    size(array(1, 2))
    also: cardinality
element_at(nested ANY, place ANY) ANY
    The element of an array at a place, from 1, from the end if it is negative; the value of a key of a map; or null
    element_at(array(1, 2, 3), 2)
try_element_at(nested ANY, place ANY) ANY
    As element_at
    try_element_at(map('a', 1), 'b')
get(array ARRAY, place INT) ANY
    The element of an array at a place, from 0, or null; as array[place]
    get(array(1, 2, 3), 0)
    kernel: element
from_json(text STRING, schema STRING[, options MAP]) ANY
    The value of a type that JSON text holds
    from_json('{"a": 1, "b": 0.8}', 'a INT, b DOUBLE')
to_json(value ANY) STRING
    A struct, an array or a map as JSON text
    to_json(named_struct('a', 1, 'b', 2))
get_json_object(text STRING, path STRING) STRING
    The part of JSON text at a path, as text
    get_json_object('{"a": "b"}', '$.a')
json_value(text STRING, path STRING) STRING
    The part of JSON text at a path, if it is neither an object nor an array
    json_value('{"a": "b"}', '$.a')
json_query(text STRING, path STRING) STRING
    The part of JSON text at a path, if it is an object or an array
    json_query('{"a": [1, 2]}', '$.a')
""")

ARRAYS = declared("""
array_contains(array ARRAY<T>, value T) BOOLEAN
    True if the array has the value; null if it has a null instead
    array_contains(array(1, 2, 3), 2)
array_position(array ARRAY<T>, value T) BIGINT
    The place, from 1, of the value in the array; 0 if nowhere
    array_position(array(312, 773, 708), 708)
array_distinct(array ARRAY) ARRAY
    The array without elements that occurred before
    array_distinct(array(1, 2, 3, NULL, 3))
array_union(one ARRAY<T>, other ARRAY<T>) ARRAY<T>
    The elements of either array, each once
    array_union(array(1, 2, 3), array(1, 3, 5))
array_intersect(one ARRAY<T>, other ARRAY<T>) ARRAY<T>
    The elements of both arrays, each once
    array_intersect(array(1, 2, 3), array(1, 3, 5))
array_except(one ARRAY<T>, other ARRAY<T>) ARRAY<T>
    The elements of the first array that the second has not, each once
    array_except(array(1, 2, 3), array(1, 3, 5))
arrays_overlap(one ARRAY<T>, other ARRAY<T>) BOOLEAN
    True if the arrays have an element in common; null if only a null may be one
    arrays_overlap(array(1, 2, 3), array(3, 4, 5))
arrays_zip(array ARRAY...) ARRAY
    Structs of the elements at the same place of the arrays
    arrays_zip(array(1, 2), array('a', 'b'))
array_join(array ARRAY, separator STRING[, null STRING]) STRING
    The elements as one text with a separator between them, without nulls or with another text for them
    array_join(array('hello', NULL, 'world'), ' ', ',')
array_min(array ARRAY) ANY
    The least element; nulls do not count
    array_min(array(1, 20, NULL, 3))
array_max(array ARRAY) ANY
    The greatest element; nulls do not count
    array_max(array(1, 20, NULL, 3))
array_remove(array ARRAY<T>, value T) ARRAY<T>
    The array without the elements that equal the value
    array_remove(array(1, 2, 3, NULL, 3), 3)
array_compact(array ARRAY) ARRAY
    The array without nulls
    array_compact(array(1, 2, NULL))
array_repeat(value ANY, count INT) ARRAY
    An array of the value so many times
    array_repeat('123', 2)
array_append(array ARRAY<T>, value T) ARRAY<T>
    The array with an element more at its end
    array_append(array('b', 'd'), 'c')
array_prepend(array ARRAY<T>, value T) ARRAY<T>
    The array with an element more at its start
    array_prepend(array('b', 'd'), 'a')
array_insert(array ARRAY<T>, place INT, value T) ARRAY<T>
    The array with an element more at a place, from 1, from the end if it is negative
    array_insert(array(1, 2, 3, 4), 5, 5)
slice(array ARRAY, start INT, length INT) ARRAY
    Part of an array from a place on, counted from 1, from the end if it is negative
    slice(array(1, 2, 3, 4), 2, 2)
flatten(arrays ARRAY) ARRAY
    The elements of the arrays in an array
    flatten(array(array(1, 2), array(3, 4)))
sequence(start ANY, stop ANY[, step ANY]) ARRAY
    The numbers, dates or times from one to another, by a step
    sequence(1, 5, 2)
sort_array(array ARRAY[, ascending BOOLEAN]) ARRAY
    The array in rising or falling order; null is the least element
    sort_array(array('b', 'd', NULL, 'c', 'a'), true)
array_sort(array ARRAY[, order FUNCTION]) ARRAY
    The array in rising order with nulls last, or in an order: negative, zero or positive as x stands before y
    array_sort(array(5, 6, 1), (x, y) -> y - x)
array_size(array ARRAY) INT
    How many elements an array has; null for null
    array_size(array(1, 2))
    means: nullif(size(array), -1)
transform(array ARRAY, function FUNCTION) ARRAY
    The array with the value of an expression for each element, and its place from 0
    transform(array(1, 2, 3), (x, i) -> x + i)
filter(array ARRAY, condition FUNCTION) ARRAY
    The elements for which a condition holds
    filter(array(1, 2, 3), x -> x % 2 = 1)
exists(array ARRAY, condition FUNCTION) BOOLEAN
    True if a condition holds for an element
    exists(array(1, 2, 3), x -> x % 2 = 0)
forall(array ARRAY, condition FUNCTION) BOOLEAN
    True if a condition holds for all elements
    forall(array(2, 4, 8), x -> x % 2 = 0)
aggregate(array ARRAY, start ANY, merge FUNCTION[, finish FUNCTION]) ANY
    The elements taken up one after the other
    aggregate(array(1, 2, 3), 0, (acc, x) -> acc + x, acc -> acc * 10)
    also: reduce
zip_with(one ARRAY, other ARRAY, function FUNCTION) ARRAY
    The value of an expression for the elements at the same place of two arrays
    zip_with(array(1, 2), array(3, 4), (x, y) -> x + y)
map_keys(map MAP) ARRAY
    The keys of a map
    map_keys(map(1, 'a', 2, 'b'))
map_values(map MAP) ARRAY
    The values of a map
    map_values(map(1, 'a', 2, 'b'))
map_entries(map MAP) ARRAY
    The entries of a map as structs of key and value
    map_entries(map(1, 'a', 2, 'b'))
    kernel: entries
map_from_arrays(keys ARRAY, values ARRAY) MAP
    A map of an array of keys and one of values
    map_from_arrays(array(1.0, 3.0), array('2', '4'))
map_from_entries(entries ARRAY) MAP
    A map of an array of structs of two fields
    map_from_entries(array(struct(1, 'a'), struct(2, 'b')))
map_concat(map MAP...) MAP
    The entries of all maps
    map_concat(map(1, 'a'), map(3, 'c'))
map_contains_key(map MAP, key ANY) BOOLEAN
    True if the map has the key
    map_contains_key(map(1, 'a', 2, 'b'), 1)
map_filter(map MAP, condition FUNCTION) MAP
    The entries for whose key and value a condition holds
    map_filter(map(1, 0, 2, 2), (k, v) -> k > v)
transform_keys(map MAP, function FUNCTION) MAP
    The map with the value of an expression of key and value as each key
    transform_keys(map(1, 1, 2, 2), (k, v) -> k + v)
transform_values(map MAP, function FUNCTION) MAP
    The map with the value of an expression of key and value as each value
    transform_values(map(1, 1, 2, 2), (k, v) -> k + v)
""")
