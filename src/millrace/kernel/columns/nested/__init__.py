"""Arrays, structs and maps, and JSON, which is how they come and go as text.

- nested_columns.py: nested columns made from their parts, taken apart, and brought to other types
- nested_functions.py: the functions of SQL that make nested values and take parts out of them; values as keys
- nested_order.py: which of two nested values is less
- json_text.py: values as JSON text; json_values.py: JSON text as values; json_as_written.py: objects that stay text
- json_functions.py: the functions of SQL for JSON

In: Arrow columns. Out: Arrow columns. A part of the room `columns`, by the same rules.
"""
