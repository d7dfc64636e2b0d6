"""Conditions of a join, sorted: over one input, keys, limits on times, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place
from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.progressing import Kinds, kinds_of
from millrace.language.joins.bands import Band, band_of
from millrace.language.joins.join_inputs import JoinInput, key_value, owners_of, times_of
from millrace.language.joins.spans import Times
from millrace.plan.joins.join_steps import JoinCondition
from millrace.plan.joins.time_limits import TimeLimit
from millrace.plan.nodes.conditions import conjuncts

_PLAIN_TYPES = (pa.types.is_duration, pa.types.is_null)


@dataclass(frozen=True)
class Conjunct:
    """One condition of several that all must hold, and the inputs that it reads."""

    expression: Expression
    parts: frozenset[int]
    place: Place | None


def bound_conjuncts(binder: ExpressionBinder, node: exp.Expr, what: str, owners: Mapping[str, int]) -> list[Conjunct]:
    """The conditions that a condition is made of."""
    bound = (binder.condition(each, what) for each in written_conjuncts(node))
    return [conjunct(part, owners, each.place) for each in bound for part in conjuncts(each.expression)]


def conjunct(expression: Expression, owners: Mapping[str, int], place: Place | None) -> Conjunct:
    """A condition with the inputs that it reads."""
    return Conjunct(expression, frozenset(owners[name] for name in expression.columns()), place)


def written_conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of AND, for the sake of their places."""
    plain = node
    while isinstance(plain, exp.Paren) and not plain.args.get("negate"):
        plain = plain.this
    if isinstance(plain, exp.And) and not plain.args.get("negate"):
        yield from written_conjuncts(plain.this)
        yield from written_conjuncts(plain.expression)
    else:
        yield node


@dataclass(frozen=True)
class Equality:
    """Expressions of two inputs that must be equal, and may be keys."""

    sides: Mapping[int, Expression]
    place: Place | None
    band: Band


@dataclass
class SortedConditions:
    """Conditions of a join by what becomes of them; `constant` ones read no input."""

    single: list[Conjunct] = field(default_factory=list)
    equal: list[Equality] = field(default_factory=list)
    spare: list[Equality] = field(default_factory=list)
    rest: list[JoinCondition] = field(default_factory=list)
    constant: list[Conjunct] = field(default_factory=list)

    def keys(self) -> list[Equality]:
        """The equalities that are keys: times are compared anyway, and are keys only where there are no others."""
        return self.equal or self.spare

    def conditions(self) -> list[JoinCondition]:
        """The conditions over several inputs, those of keys included."""
        keyed = [_condition(each, keyed=True) for each in self.keys()]
        return [*keyed, *self.rest, *([_condition(each, keyed=False) for each in self.spare] if self.equal else [])]


def _condition(equality: Equality, *, keyed: bool) -> JoinCondition:
    band, expression = equality.band, Call("=", tuple(equality.sides.values()))
    return JoinCondition(expression, frozenset(equality.sides), band.limits, band.untils, band.exact, keyed)


def sort_conditions(
    given: Sequence[Conjunct], inputs: Sequence[JoinInput], times: Times | None = None
) -> SortedConditions:
    """The conditions by what becomes of them; `times` are the columns that may limit the join, by default all."""
    found = SortedConditions()
    times = times_of(inputs) if times is None else times
    owners = owners_of(inputs)
    schema = pa.schema([each for one in inputs for each in one.fields])
    for each in given:
        if len(each.parts) < 2:
            (found.single if each.parts else found.constant).append(each)
            continue
        band = _band(each, times, owners, inputs, kinds_of(times, schema))
        equality = _equality(each, band, owners, schema)
        if equality is None:
            found.rest.append(JoinCondition(each.expression, each.parts, band.limits, band.untils, band.exact))
        elif band.exact and band.is_equal:
            found.spare.append(equality)
        else:
            found.equal.append(equality)
    return found


def _band(given: Conjunct, times: Times, owners: Mapping[str, int], inputs: Sequence[JoinInput], kinds: Kinds) -> Band:
    """What a condition says of the times of two inputs."""
    if len(given.parts) != 2:
        return Band()
    match given.expression:
        case Call("=", (Column(left), Column(right))) if left not in times and right not in times:
            one, other = (inputs[owners[name]] for name in (left, right))
            instants = [each.instant(name) for each, name in ((one, left), (other, right))]
            if instants[0] is not None and instants[0] == instants[1]:
                limits = (TimeLimit(owners[left], owners[right], 0), TimeLimit(owners[right], owners[left], 0))
                return Band(limits, exact=True, is_equal=True)
    return band_of(given.expression, times, owners, kinds)


def _equality(given: Conjunct, band: Band, owners: Mapping[str, int], schema: pa.Schema) -> Equality | None:
    """A condition that compares two inputs for equality, if its values can be keys."""
    match given.expression:
        case Call("=", (left, right)):
            parts = [{owners[name] for name in each.columns()} for each in (left, right)]
        case _:
            return None
    if [len(each) for each in parts] != [1, 1] or parts[0] == parts[1] or (band.exact and not band.is_equal):
        return None
    if any(refused(left.type_in(schema)) for refused in _PLAIN_TYPES):
        return None
    (first,), (second,) = parts
    return Equality({first: left, second: right}, given.place, band)


# Keys


@dataclass(frozen=True)
class Keys:
    """Columns that must be equal, by input; what is computed for each input; conditions on one input that follow."""

    columns: tuple[Mapping[int, str], ...]
    computed: Mapping[int, Mapping[str, Expression]]
    single: tuple[tuple[int, Expression], ...] = ()


def keys_of(equalities: Sequence[Equality], inputs: Sequence[JoinInput], start: int = 0) -> Keys:
    """The keys of equalities, which are transitive. Computed keys are numbered from `start`."""
    schema = pa.schema([each for one in inputs for each in one.fields])
    columns: list[Mapping[int, str]] = []
    computed: dict[int, dict[str, Expression]] = {position: {} for position in range(len(inputs))}
    single: list[tuple[int, Expression]] = []
    for number, members in enumerate(_classes(equalities), start):
        key: dict[int, str] = {}
        for part, expression in members:
            if part in key:
                first = next(each for owner, each in members if owner == part)
                single.append((part, Call("=", (first, expression))))
                continue
            kind = expression.type_in(schema)
            if isinstance(expression, Column) and not pa.types.is_floating(kind):
                key[part] = expression.name
            else:
                key[part] = f"{inputs[part].qualifier}.__key{number}"
                computed[part][key[part]] = key_value(expression, kind)
        columns.append(key)
    return Keys(tuple(columns), computed, tuple(single))


def _classes(equalities: Sequence[Equality]) -> list[list[tuple[int, Expression]]]:
    """Expressions that are all equal to each other, each class in the order of the text."""
    classes: list[list[tuple[int, Expression]]] = []
    for each in equalities:
        members = list(each.sides.items())
        touched = [one for one in classes if any(member in one for member in members)]
        merged = [member for one in touched for member in one]
        merged += [member for member in members if member not in merged]
        position = classes.index(touched[0]) if touched else len(classes)
        classes = [one for one in classes if one not in touched]
        classes.insert(position, merged)
    return classes
