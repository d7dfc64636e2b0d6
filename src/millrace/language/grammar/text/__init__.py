"""A text, and what can be read from it at a place.

dialect             text -> tokens: Spark's words with a few changes
variables           SET, and what `${name}` stands for
cursor              the tokens of a statement with a position, and what is wrong at it
complaints          what was expected where a token does not fit
expression_reader   sqlglot's expressions with places; it and the cursor alone touch sqlglot's private parts
places              where tokens and expressions stand in a text
intervals           lengths of time in microseconds
lengths             a length, or a number where rows progress by one
"""
