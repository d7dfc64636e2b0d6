"""Sqlglot's expressions into the kernel's, with every name looked up and every type known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from millrace.errors import NotYet, Place, QueryError, listed
from millrace.kernel.columns.decimals import type_of_number
from millrace.kernel.columns.expressions import Literal
from millrace.kernel.columns.interval_values import INTERVAL_PARTS
from millrace.kernel.columns.sql_types import read_type
from millrace.kernel.elements import INTERVAL, MONTHS, TIMESTAMP
from millrace.language.expressions import typed
from millrace.language.expressions.calls import NO_FUNCTIONS, Functions, bind_call
from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.argument_types import arguments_of
from millrace.language.expressions.json_calls import part
from millrace.language.expressions.refused_expressions import (
    IN_FROM,
    NOT_IN_FROM,
    refused_form,
    refused_over,
    unknown_type,
)
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.sql_functions import FIELDS
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.text.places import place_of, placed_as

_DAYS = {("+", 0): "date_add", ("+", 1): "date_add", ("-", 0): "date_sub"}
"""Dates so many days later or before: the operator, and on which side of it the date stands."""
_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%"}
_COMPARISONS = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_BITS = {
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
}  # fmt: skip
_EQUALITIES = ("=", "<>", "<=>", "in")
_PATTERNS = {exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike"}
_LEAST_NUMBERS = {2**31: pa.int32(), Decimal(2**63): pa.int64()}
"""Numbers that with a minus are the least of a type, and without it too great for it."""
_DEEPEST = 150
"""How deeply expressions may be nested: each part of a plan that walks them has room for so many levels."""


class ExpressionBinder:
    """Binds expressions over the rows of one scope."""

    groups_by_conditions = False
    """True if a part of AND or OR may be known as a whole."""

    def __init__(self, scope: Scope, functions: Functions = NO_FUNCTIONS) -> None:
        self.scope = scope
        self.functions = functions
        self._depth = 0
        self.variables: Mapping[str, Typed] = {}

    def bind(self, node: exp.Expr) -> Typed:
        """The kernel's expression for a node. An expression or an error without a place gets that of the node."""
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise QueryError(f"an expression is nested too deeply: {_DEEPEST} levels are allowed", hint="Split it.")
            bound = self.known(node) or self._bind_plain(node)
        except (QueryError, NotYet) as error:
            error.place = error.place or place_of(node)
            raise
        finally:
            self._depth -= 1
        return bound if bound.place is not None else replace(bound, place=place_of(node))

    def known(self, node: exp.Expr) -> Typed | None:
        """The meaning of a node as a whole, such as a group key; None if its parts are to be bound."""
        return None

    def condition(self, node: exp.Expr, what: str) -> Typed:
        """A node that must be a condition."""
        return typed.boolean(self.bind(node), what)

    def with_variables(self, node: exp.Expr, variables: Mapping[str, Typed]) -> Typed:
        """A node in which some names stand for values."""
        before, self.variables = self.variables, variables
        try:
            return self.bind(node)
        finally:
            self.variables = before

    def column(self, node: exp.Column) -> Typed:
        """A column by its name."""
        return self.scope.column(node, place_of(node))

    def over(self, node: exp.Expr) -> Typed:
        """A function with OVER."""
        raise refused_over(node)

    def _bind_plain(self, node: exp.Expr) -> Typed:
        kind = type(node)
        if kind in _ARITHMETIC:
            bound = self._arithmetic(node, _ARITHMETIC[kind])
        elif kind in _COMPARISONS:
            bound = self._compared(_COMPARISONS[kind], [node.this, node.expression])
        elif kind in _PATTERNS:
            return self._like(_PATTERNS[kind], node)
        elif kind in _BITS:
            bound = self._bits(_BITS[kind], node)
        else:
            bound = getattr(self, f"_bind_{node.key}", self._bind_unknown)(node)
        return typed.call("not", [bound], bound.place) if node.args.get("negate") else bound

    def _bind_unknown(self, node: exp.Expr) -> Typed:
        raise refused_form(node)

    def _arithmetic(self, node: exp.Expr, function: str) -> Typed:
        operands = [self.bind(node.this), self.bind(node.expression)]
        kinds = [each.type for each in operands]
        for position, other in ((0, 1), (1, 0)):
            if (
                pa.types.is_date(kinds[position])
                and pa.types.is_integer(kinds[other])
                and (function, position) in _DAYS
            ):
                days = [operands[position], operands[other]]
                return typed.call(_DAYS[function, position], arguments_of(FUNCTIONS["date_add"], days))
            if pa.types.is_null(kinds[position]):
                operands[position] = typed.cast(operands[position], _beside(function, kinds[other]))
            elif pa.types.is_date(kinds[position]) and kinds[other] != MONTHS:
                operands[position] = typed.cast(operands[position], TIMESTAMP)
        return typed.call(function, typed.computable(operands))

    def _like(self, function: str, node: exp.Expr) -> Typed:
        """A pattern, or ANY or ALL of several; NOT is said of each."""
        word = function.upper()
        text, several = typed.text(self.bind(node.this), word), node.expression
        is_several = isinstance(several, exp.Any | exp.All)
        patterns = several.this.expressions or [several.this.unnest()] if is_several else [several]
        form = FUNCTIONS[function].form
        found = [typed.call(function, [text, self._pattern(each, word)], form=form) for each in patterns]
        if node.args.get("negate"):
            found = [typed.call("not", [each], each.place) for each in found]
        return typed.call("and" if isinstance(several, exp.All) else "or", found) if len(found) > 1 else found[0]

    def _pattern(self, node: exp.Expr, word: str) -> Typed:
        return typed.text(self.bind(node), f"the pattern of {word}")

    def _bits(self, function: str, node: exp.Expr) -> Typed:
        if function.startswith("shift"):
            call = exp.Anonymous(this=function, expressions=[node.this, node.expression])
            return bind_call(self, placed_as(call, node))
        operands = typed.unify([self.bind(node.this), self.bind(node.expression)])
        return typed.call(function, [_whole_null(each) for each in operands])

    def equal(self, one: exp.Expr, other: exp.Expr) -> Typed:
        """True where two values are equal, or both null."""
        return self._compared("<=>", [one, other])

    def _compared(self, function: str, nodes: list[exp.Expr], place: Place | None = None) -> Typed:
        """A function over values that must be of one type; arrays and structs are compared by what they hold."""
        values = self._comparable(nodes, place)
        if pa.types.is_nested(values[0].type) and function in _EQUALITIES:
            values = [typed.key(each) for each in values]
        return typed.call(function, values, place)

    def _comparable(self, nodes: list[exp.Expr], place: Place | None = None) -> list[Typed]:
        """Values of one type that can be compared: where all are NULL, nulls of a type that has a comparison."""
        values = typed.unify([self.bind(each) for each in nodes], place)
        return [typed.cast(each, pa.bool_()) if pa.types.is_null(each.type) else each for each in values]

    # One method per kind of node, by sqlglot's key for it

    def _bind_column(self, node: exp.Column) -> Typed:
        begin, fields = self.scope.split(node)
        return reduce(typed.field, fields, self.column(begin))

    def _bind_identifier(self, node: exp.Identifier) -> Typed:
        """A variable; sqlglot has told those before an arrow from columns."""
        if node.name not in self.variables:
            raise QueryError(f'"{node.name}" is not a variable here', hint="Write x -> expression, with x in it.")
        return self.variables[node.name]

    def _bind_dot(self, node: exp.Expr) -> Typed:
        return typed.field(self.bind(node.this), node.expression.name)

    def _bind_bracket(self, node: exp.Expr) -> Typed:
        if len(node.expressions) != 1:
            raise QueryError("one place or key stands in brackets", hint="Write a[0] or m['key'].")
        return typed.element(self.bind(node.this), self.bind(node.expressions[0]))

    def _bind_array(self, node: exp.Expr) -> Typed:
        return bind_call(self, placed_as(exp.Anonymous(this="array", expressions=node.expressions), node))

    def _bind_jsonextract(self, node: exp.Expr) -> Typed:
        """`a:b.c[0]`, a part of a JSON text."""
        steps = [each for each in node.expression.expressions if not isinstance(each, exp.JSONPathRoot)]
        if not all(isinstance(each.this, str | int) for each in steps):
            raise QueryError("a path has names and places", hint="Write text:a.b[0]; a path with * is not supported.")
        path = "".join(f"[{each.this}]" if isinstance(each.this, int) else f"['{each.this}']" for each in steps)
        return part(self.bind(node.this), f"${path}", "any")

    def _bind_hexstring(self, node: exp.Expr) -> Typed:
        return typed.literal(bytes.fromhex(node.name.zfill(len(node.name) + len(node.name) % 2)), pa.binary())

    def _bind_anonymous(self, node: exp.Anonymous) -> Typed:
        return bind_call(self, node)

    def _bind_window(self, node: exp.Window) -> Typed:
        return self.over(node)

    def _bind_paren(self, node: exp.Expr) -> Typed:
        return self.bind(node.this)

    def _bind_literal(self, node: exp.Expr) -> Typed:
        if node.is_string:
            self._refuse_quoted_column(node)
            return typed.literal(node.name, pa.string())
        try:
            return _number(node.name)
        except (ValueError, OverflowError, ArithmeticError):
            raise QueryError(f'"{node.name}" is not a number', hint="Write it as 12, 1.5 or 1e6.") from None

    def _refuse_quoted_column(self, node: exp.Expr) -> None:
        """Refuse text in double quotes that names a column, which is text in Spark and a column elsewhere."""
        place = place_of(node)
        if place is not None and place.text.startswith('"') and self.scope.find(node.name) is not None:
            hint = f"Write `{node.name}` for the column, or '{node.name}' for the text."
            raise QueryError(f"{place.text} may be a column or text", hint=hint)

    def _bind_null(self, node: exp.Expr) -> Typed:
        return typed.literal(None, pa.null())

    def _bind_boolean(self, node: exp.Expr) -> Typed:
        return typed.literal(bool(node.this), pa.bool_())

    def _bind_interval(self, node: exp.Expr) -> Typed:
        return typed.literal(int(node.this.name), MONTHS if node.args.get("unit") else INTERVAL)

    def _bind_neg(self, node: exp.Expr) -> Typed:
        given = self.bind(node.this)
        value = given.expression.value if isinstance(given.expression, Literal) else None
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            kind = _LEAST_NUMBERS.get(value, given.type)
            return typed.literal(int(-value) if pa.types.is_integer(kind) else -value, kind)
        return typed.call("negative", [typed.cast(given, pa.float64()) if pa.types.is_null(given.type) else given])

    def _bind_not(self, node: exp.Expr) -> Typed:
        return typed.call("not", [self.condition(node.this, "the operand of NOT")])

    def _bind_and(self, node: exp.Expr) -> Typed:
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        nodes: list[exp.Expr] = []
        # A loop, as parts are nested on the left as deeply as there are parts.
        while isinstance(node, kind) and not (nodes and self.groups_by_conditions and self.known(node)):
            nodes.append(node.expression)
            node = node.this
        operands = [self.condition(each, f"an operand of {kind.key.upper()}") for each in (node, *reversed(nodes))]
        return typed.call(kind.key, operands)

    _bind_or = _bind_and

    def _bind_between(self, node: exp.Expr) -> Typed:
        value, low, high = self._comparable([node.this, node.args["low"], node.args["high"]])
        return typed.call("and", [typed.call(">=", [value, low]), typed.call("<=", [value, high])])

    def _bind_in(self, node: exp.Expr) -> Typed:
        if node.args.get("query") is not None:
            hint = NOT_IN_FROM if isinstance(node.parent, exp.Not) else IN_FROM
            raise NotYet("IN with a subquery is not supported yet", hint=hint)
        if not node.expressions:
            place = place_of(node.args["field"]) if node.args.get("field") is not None else None
            raise QueryError("IN takes a list of values", hint="Write column IN (1, 2, 3).", place=place)
        return self._compared("in", [node.this, *node.expressions])

    def _bind_is(self, node: exp.Expr) -> Typed:
        if isinstance(node.expression, exp.Null):
            return typed.call("is_null", [self.bind(node.this)])
        given, truth = self.bind(node.this), self.bind(node.expression)
        if not (pa.types.is_boolean(truth.type) or pa.types.is_null(truth.type)):
            raise QueryError(
                f"IS takes NULL, TRUE or FALSE, not {truth.expression}",
                hint=f"Compare with = or <>: {given.expression} = {truth.expression}.",
                place=truth.place,
            )
        return typed.call("<=>", [typed.boolean(given, "the operand of IS"), typed.boolean(truth, "what IS tests")])

    def _bind_nullsafeneq(self, node: exp.Expr) -> Typed:
        return typed.call("not", [self._compared("<=>", [node.this, node.expression])])

    def _bind_case(self, node: exp.Expr) -> Typed:
        conditions = [self._case_condition(node, branch) for branch in node.args["ifs"]]
        values = [self.bind(each.args["true"]) for each in node.args["ifs"]]
        last = node.args.get("default")
        return self.chosen(conditions, [*values, typed.literal(None, pa.null()) if last is None else self.bind(last)])

    def _case_condition(self, node: exp.Expr, branch: exp.Expr) -> Typed:
        if node.this is None:
            return self.condition(branch.this, "a condition of CASE")
        return self._compared("=", [node.this, branch.this], place_of(branch))

    def chosen(self, conditions: list[Typed], values: list[Typed]) -> Typed:
        """The value of the first condition that holds, else the last one."""
        values = typed.unify(values)
        branches = [each for pair in zip(conditions, values, strict=False) for each in pair]
        return typed.call("case", [*branches, values[-1]])

    def _bind_cast(self, node: exp.Expr) -> Typed:
        given = self.bind(node.this)
        to = node.args["to"]
        name = str(to.args.get("kind") or to.sql("spark"))
        kind = read_type(name)
        if kind is None:
            raise unknown_type(name, place_of(to))
        # DATE '...' is a literal and must be a date; CAST('...' AS DATE), which the parser calls TryCast, may be null.
        is_literal = isinstance(node.this, exp.Literal) and not isinstance(node, exp.TryCast)
        if is_literal and pa.types.is_decimal(kind) and not to.expressions:
            # DECIMAL '1.50' has the digits that are written; DECIMAL alone would have none after the point.
            kind = typed.type_of_digits(given, kind)
        found = typed.literal_of(given, kind) if is_literal else typed.cast(given, kind)
        return Typed(found.expression, found.value)

    _bind_trycast = _bind_cast

    def _bind_dpipe(self, node: exp.Expr) -> Typed:
        parts = node.expressions or [node.this, node.expression]
        return typed.call("concat", [self.bind(each) for each in parts])

    _bind_concat = _bind_dpipe

    def _bind_extract(self, node: exp.Expr) -> Typed:
        return self.extracted(node.this.name, self.bind(node.expression))

    def extracted(self, field: str, value: Typed) -> Typed:
        """A field of a time."""
        name = field.lower() if field.lower() in FIELDS else field.lower().removesuffix("s")
        if pa.types.is_duration(value.type) and name in INTERVAL_PARTS[value.type]:
            return typed.call("interval_part", [value, typed.literal(name, pa.string())])
        if name not in FIELDS:
            known = listed(dict.fromkeys(FIELDS.values()))
            raise QueryError(f'"{field}" cannot be extracted', hint=f"The fields are {known}.")
        return typed.call(FIELDS[name], [value])

    def _bind_substring(self, node: exp.Expr) -> Typed:
        parts = [each for each in (node.this, node.args.get("start"), node.args.get("length")) if each is not None]
        return bind_call(self, placed_as(exp.Anonymous(this="substring", expressions=parts), node))

    def _bind_trim(self, node: exp.Expr) -> Typed:
        """`trim(BOTH x FROM text)`; sqlglot reads trim(a, b) so too, where Spark takes a for the characters."""
        function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
        given = [each for each in (node.this, node.args.get("expression")) if each is not None]
        return typed.call(function, [typed.cast(self.bind(each), pa.string()) for each in given])

    def _bind_overlay(self, node: exp.Expr) -> Typed:
        parts = [node.this, node.expression, node.args["from_"], node.args.get("for_")]
        call = exp.Anonymous(this="overlay", expressions=[each for each in parts if each is not None])
        return bind_call(self, placed_as(call, node))

    def _bind_escape(self, node: exp.Expr) -> Typed:
        like = node.this
        if type(like) not in _PATTERNS:
            raise QueryError("ESCAPE follows LIKE and its pattern", hint="Write text LIKE 'a/%' ESCAPE '/'.")
        word = _PATTERNS[type(like)]
        text = typed.text(self.bind(like.this), word.upper())
        escape = self.bind(node.expression)
        if not escape.is_constant or len(str(escape.value.as_py())) != 1:
            raise QueryError("ESCAPE takes one character", hint="Write text LIKE 'a/%' ESCAPE '/'.", place=escape.place)
        return typed.call(word, [text, self._pattern(like.expression, word.upper()), escape])

    def _bind_bitwisenot(self, node: exp.Expr) -> Typed:
        return typed.call("~", [_whole_null(self.bind(node.this))])


def _whole_null(given: Typed) -> Typed:
    """An operand of bits; NULL is an INT."""
    return typed.cast(given, pa.int32()) if pa.types.is_null(given.type) else given


def _beside(function: str, kind: pa.DataType) -> pa.DataType:
    """What NULL is in arithmetic beside a value of a type; as in Spark, a DOUBLE beside another NULL."""
    if pa.types.is_null(kind):
        return pa.int64() if function == "div" else pa.float64()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return TIMESTAMP if function == "-" else INTERVAL
    if kind in (INTERVAL, MONTHS) and function in ("*", "/"):
        return pa.float64()
    return kind


def _number(text: str) -> Typed:
    """A literal: a whole number, a decimal, or with an exponent a fraction."""
    if "e" in text.lower():
        return typed.literal(float(text), pa.float64())
    if text.isdigit() and int(text) < 2**63:
        return typed.literal(int(text), pa.int32() if int(text) < 2**31 else pa.int64())
    return typed.literal(Decimal(text), type_of_number(Decimal(text)))
