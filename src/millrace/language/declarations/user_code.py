"""CREATE FUNCTION and CREATE AGGREGATE, bound: types known, blocks of SQL as expressions over the state's variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError, listed
from millrace.kernel.aggregates.functions.user_aggregates import (
    Assignments,
    PythonAggregate,
    SqlAggregate,
    UserAggregate,
)
from millrace.kernel.columns.expressions import Column
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.columns.user_functions import UserFunction
from millrace.language.declarations.streams import type_of
from millrace.language.expressions import typed
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.sql_functions import KNOWN
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import (
    AggregateStatement,
    Assignment,
    Blocks,
    FunctionStatement,
    Name,
    SinkStatement,
    Statement,
    StreamStatement,
    TableStatement,
)
from millrace.language.grammar.text.places import place_of

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def bind_function(statement: FunctionStatement) -> UserFunction:
    """The function of a CREATE FUNCTION."""
    _refuse_known(statement.name)
    kinds = tuple(type_of(each.type) for each in statement.parameters)
    path = _import_path(statement.computes, "a function", "function")
    return UserFunction(statement.name.text, kinds, type_of(statement.returns), path)


def refuse_user_code(statements: Iterable[Statement]) -> None:
    """Refuse statements that name Python code, or a class of Spark's sources, to be loaded."""
    for each in statements:
        match each:
            case FunctionStatement(name=name) | AggregateStatement(name=name, computes=Name()):
                raise _no_user_code(f'"{name.text}" is computed by Python code', name)
            case (
                SinkStatement(name=name, connector=connector)
                | StreamStatement(name=name, connector=connector)
                | TableStatement(name=name, connector=connector)
            ) if connector is not None and (connector.format.text.lower() == "python" or "." in connector.format.text):
                raise _no_user_code(f'"{name.text}" names code to be loaded', connector.format)


def _no_user_code(fact: str, name: Name) -> QueryError:
    return QueryError(f"{fact}, which this run does not allow", hint="Leave out --no-user-code.", place=name.place)


def _refuse_known(name: Name) -> None:
    """Refuse the name of a function that the language has."""
    if name.text.lower() in KNOWN:
        raise QueryError(f'"{name.text}" is already a function', hint="Choose another name.", place=name.place)


def _import_path(written: Name, what: str, last: str) -> str:
    """Where Python code is, `package.module:name`; refuses any other text."""
    if _IMPORT_PATH.fullmatch(written.text) is None:
        raise QueryError(
            f'"{written.text}" does not name {what}', hint=f"Write 'package.module:{last}'.", place=written.place
        )
    return written.text


OTHER = "other"
"""What stands before the variables of the second state in MERGE."""

Variables = Mapping[str, pa.DataType]


def bind_aggregate(statement: AggregateStatement, functions: Functions) -> UserAggregate:
    """The aggregate of a CREATE AGGREGATE."""
    name = statement.name
    _refuse_known(name)
    returns = type_of(statement.returns)
    if isinstance(statement.computes, Blocks):
        return _SqlAggregateBinder(statement, functions).bound(statement.computes, returns)
    kinds = tuple(type_of(each.type) for each in statement.parameters)
    return PythonAggregate(name.text, kinds, returns, _import_path(statement.computes, "a class", "Class"))


class _SqlAggregateBinder:
    """Binds the blocks of one aggregate."""

    def __init__(self, statement: AggregateStatement, functions: Functions) -> None:
        self.name = statement.name.text
        self.functions = functions
        self.parameters: dict[str, pa.DataType] = {}
        for each in statement.parameters:
            if each.name is None or each.name.text in self.parameters:
                raise QueryError(
                    "a parameter of an aggregate in SQL needs a name of its own",
                    hint=f"Write CREATE AGGREGATE {self.name}(next DOUBLE).",
                    place=each.type.place if each.name is None else each.name.place,
                )
            self.parameters[each.name.text] = type_of(each.type)

    def bound(self, blocks: Blocks, returns: pa.DataType) -> SqlAggregate:
        """The aggregate that the blocks compute."""
        initial = self._initial(blocks.initialize)
        variables = {name: value.type for name, value in initial.items()}
        iterate = self._assigned("ITERATE", blocks.iterate, variables, self.parameters)
        others = {f"{OTHER}.{name}": kind for name, kind in variables.items()}
        merge = None if blocks.merge is None else self._assigned("MERGE", blocks.merge, variables, others)
        result = typed.cast(self._binder(variables).bind(blocks.terminate), returns)
        initialize = tuple((name, value.expression) for name, value in initial.items())
        parameters = tuple(self.parameters.items())
        return SqlAggregate(self.name, parameters, returns, initialize, iterate, merge, result.expression)

    def _binder(self, columns: Variables) -> ExpressionBinder:
        return _StateBinder(Scope(pa.schema(list(columns.items()))), self.functions)

    def _initial(self, assignments: tuple[Assignment, ...]) -> dict[str, Typed]:
        """The variables with their first values; numbers have a type in which they can grow."""
        found: dict[str, Typed] = {}
        for each in assignments:
            name, value = each.variable, self._binder({}).bind(each.expression)
            if name.text.lower() in {OTHER, *(parameter.lower() for parameter in self.parameters)}:
                raise QueryError(
                    f'the name "{name.text}" is already used', hint="Choose another name.", place=name.place
                )
            if pa.types.is_null(value.type):
                raise QueryError(
                    f'the variable "{name.text}" has no type', hint="Write CAST(NULL AS type).", place=value.place
                )
            found[name.text] = _grown(value, each.expression)
        return found

    def _assigned(
        self, block: str, given: tuple[Assignment, ...], variables: Variables, further: Variables
    ) -> Assignments:
        """Each variable with its new value, brought to its type; those that are not assigned keep theirs."""
        binder = self._binder({**variables, **further})
        values: dict[str, Typed] = {}
        for each in given:
            name = Scope(pa.schema(list(variables.items()))).find(each.variable.text)
            if name is None:
                raise QueryError(
                    f'"{each.variable.text}" is not a variable of the state',
                    hint=f"INITIALIZE gives the variables: {listed(variables)}.",
                    place=each.variable.place,
                )
            values[name] = _fitting(binder.bind(each.expression), name, variables[name], block)
        return tuple((name, values[name].expression if name in values else Column(name)) for name in variables)


def _grown(value: Typed, written: exp.Expr) -> Typed:
    """A first value in a type with room to grow: BIGINT, or DOUBLE for a number that is written with a point."""
    if pa.types.is_integer(value.type):
        return typed.cast(value, pa.int64())
    plain = written.this if isinstance(written, exp.Neg) else written
    return typed.cast(value, pa.float64()) if isinstance(plain, exp.Literal) and typed.is_number(value.type) else value


def _fitting(value: Typed, name: str, kind: pa.DataType, block: str) -> Typed:
    """A value cast to the type of its variable; refuses a cast that would lose something at every step."""
    if typed.common_type([value.type, kind]) == kind:
        return typed.cast(value, kind)
    found, wanted = sql_name(value.type), sql_name(kind)
    start = (
        f"Write {name} = 0.0 in INITIALIZE, or"
        if not pa.types.is_integer(value.type) and typed.is_number(value.type) and typed.is_number(kind)
        else "Write"
    )
    raise QueryError(
        f'variable "{name}" is {wanted}, but {block} gives {found}',
        hint=f"{start} CAST(... AS {wanted}) around the value in {block}.",
        place=value.place,
    )


class _StateBinder(ExpressionBinder):
    """Knows `other.name` beside plain names."""

    def column(self, node: exp.Column) -> Typed:
        if not node.table:
            return super().column(node)
        if node.table.lower() != OTHER:
            merges = any(name.startswith(f"{OTHER}.") for name in self.scope.schema.names)
            in_merge = f'In MERGE the second state is "{OTHER}": write {OTHER}.{node.name}.'
            hint = in_merge if merges else "Write the name alone."
            raise QueryError(f'"{node.table}" is not a state of this aggregate', hint=hint)
        found = self.scope.find(f"{OTHER}.{node.name}")
        if found is None:
            raise self.scope.unknown(f"{OTHER}.{node.name}", place_of(node))
        return typed.column(found, self.scope.schema.field(found).type)
