from __future__ import annotations

import datetime as dt
import random
from decimal import ROUND_HALF_UP, Decimal, getcontext, localcontext

import numpy as np
import pyarrow as pa
import pytest

import millrace as mr
from millrace.kernel.aggregates.functions import function_of
from millrace.kernel.columns import decimals
from millrace.kernel.columns.casts import cast
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.scalar_functions import FUNCTIONS

GREATEST = Decimal("9" * 38)


@pytest.mark.parametrize("precision", [18, 30])
def test_sums_of_groups_are_exact_and_merge_in_their_own_type(precision: int) -> None:
    draw = random.Random(7)
    values = [Decimal(draw.randint(-(10**precision) + 1, 10**precision - 1)).scaleb(-3) for _ in range(500)]
    codes = np.array([draw.randrange(5) for _ in values])
    total = function_of("sum")
    parts = total.of_rows(Groups(codes, 5), [pa.array(values, pa.decimal128(precision, 3))])
    assert parts[0].type == decimals.sum_type(pa.decimal128(precision, 3))
    with localcontext(getcontext().copy()) as context:
        context.prec = 60
        assert parts[0].to_pylist() == [sum(v for v, c in zip(values, codes, strict=True) if c == n) for n in range(5)]
        (merged,) = total.merged(Groups(np.zeros(5, np.int64), 1), parts)
        assert (merged.type, merged.to_pylist()) == (parts[0].type, [sum(values)])


def test_a_sum_or_product_that_does_not_fit_raises_and_a_cast_gives_null() -> None:
    great = pa.array([GREATEST, GREATEST], pa.decimal128(38, 0))
    with pytest.raises(pa.ArrowInvalid):
        function_of("sum").of_rows(Groups(np.zeros(2, np.int64), 1), [great])
    with pytest.raises(pa.ArrowInvalid):
        FUNCTIONS["*"](great, great)
    assert cast(great, pa.decimal128(10, 2)).to_pylist() == [None, None]


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_decimals_go_through_python_rows_functions_and_aggregates(host: str) -> None:
    net = mr.Network()
    rows = [
        {"k": "a", "price": Decimal(price), "ts": dt.datetime(2024, 1, 1, 0, 0, second, tzinfo=dt.UTC)}
        for second, price in enumerate(["0.10", "0.20", "12.35"])
    ]
    net.function("gross", gross, takes="DECIMAL(9, 2)", returns="DECIMAL(12, 4)")
    net.aggregate("spread", Spread, takes="DECIMAL(9, 2)", returns="DECIMAL(9, 2)")
    sales = net.stream("s", "k STRING, price DECIMAL(9, 2), ts TIMESTAMP", time="ts", source=[rows])
    found = sales.window(range="1 minute").group_by("k").agg(total="sum(gross(price))", spread="spread(price)")
    handle = net.query("q", found.select("total", "spread")).run(on=host, until="end")
    assert handle.results("q").select(["total", "spread"]).to_pylist() == [
        {"total": Decimal("15.0535"), "spread": Decimal("12.25")}
    ]


@pytest.mark.parametrize(("precision", "scale"), [(12, 2), (5, 2), (38, 10), (6, 0), (3, 3)])
def test_fractions_become_the_decimals_of_their_shortest_spelling(precision: int, scale: int) -> None:
    draw, kind = random.Random(5), pa.decimal128(precision, scale)
    edges = [1.005, 2.675, -0.005, 0.0, -0.0, 999.995, 0.125, 1e12, 1e300, 5e-324, None, 0.4995]
    values = [*edges, *(draw.choice([draw.uniform(-1e4, 1e4), draw.randint(-99999, 99999) / 1000]) for _ in range(500))]
    found = cast(pa.array(values, pa.float64()), kind)
    found.validate(full=True)
    for value, decimal in zip(values, found.to_pylist(), strict=True):
        assert decimal == (None if value is None else by_hand(value, precision, scale)), value


def by_hand(value: float, precision: int, scale: int) -> Decimal | None:
    with localcontext(prec=400):
        rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None


def gross(price: Decimal) -> Decimal:
    return price * Decimal("1.19")


class Spread:
    def initialize(self) -> list[Decimal]:
        return []

    def iterate(self, state: list[Decimal], prices: pa.Array) -> list[Decimal]:
        return state + prices.to_pylist()

    def terminate(self, state: list[Decimal]) -> Decimal:
        return max(state) - min(state)

    def merge(self, state: list[Decimal], other: list[Decimal]) -> list[Decimal]:
        return state + other


@pytest.mark.parametrize(("precision", "scale"), [(10, 2), (18, 18), (18, 0), (38, 10), (38, 38), (5, -2)])
def test_a_decimal_becomes_the_double_next_to_it(precision: int, scale: int) -> None:
    draw = random.Random(precision + scale)
    values = [Decimal(draw.randint(1 - 10**precision, 10**precision - 1)).scaleb(-scale) for _ in range(2000)]
    column = pa.array([None, *values], pa.decimal128(precision, scale)).slice(1)
    assert decimals.as_doubles(column).to_pylist() == [float(each) for each in values]
    assert cast(column.slice(0, 3), pa.float32()).to_pylist() == [np.float32(str(each)) for each in values[:3]]
    assert decimals.as_doubles(column[0]).as_py() == float(values[0])
