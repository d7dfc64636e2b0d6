from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation
from millrace.plan.nodes.node import walk
from tests.unit.language.scripts import names, refusal, root

WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"


def called(text: str) -> Aggregation:
    found = root(f"SELECT {text} AS x FROM main1 {WINDOW}")
    (aggregate,) = [each for each in walk(found) if isinstance(each, Aggregate)]
    (aggregation,) = aggregate.aggregations
    return aggregation


@pytest.mark.parametrize(
    ("text", "function", "arguments", "parameters"),
    [
        ("count(*)", "count", [], ()),
        ("count(len)", "count", ["len"], ()),
        ("count(DISTINCT srcIP)", "count_distinct", ["srcIP"], ()),
        ("sum(DISTINCT len)", "sum_distinct", ["len"], ()),
        ("mean(DISTINCT len)", "avg_distinct", ["len"], ()),
        ("max(DISTINCT len)", "max", ["len"], ()),
        ("variance(len)", "var_samp", ["len"], ()),
        ("var_pop(len)", "var_pop", ["len"], ()),
        ("stddev(len)", "stddev_samp", ["len"], ()),
        ("std(len)", "stddev_samp", ["len"], ()),
        ("stddev_pop(len)", "stddev_pop", ["len"], ()),
        ("first(len)", "first", ["len"], ()),
        ("first_value(len)", "first", ["len"], ()),
        ("last(len)", "last", ["len"], ()),
        ("last_value(len, FALSE)", "last", ["len"], ()),
        ("max_by(srcIP, len)", "max_by", ["srcIP", "len"], ()),
        ("arg_max(srcIP, len)", "max_by", ["srcIP", "len"], ()),
        ("arg_min(srcIP, len)", "min_by", ["srcIP", "len"], ()),
        ("approx_count_distinct(srcIP)", "approx_count_distinct", ["srcIP"], ()),
        ("approx_percentile(len, 0.9)", "approx_percentile", ["len"], (0.9,)),
        ("percentile_approx(len, 0.9, 100)", "approx_percentile", ["len"], (0.9,)),
        ("approx_quantile(len, 1)", "approx_percentile", ["len"], (1.0,)),
        ("percentile(len, 0.25)", "percentile", ["len"], (0.25,)),
        ("median(len)", "percentile", ["len"], (0.5,)),
        ("percentile_cont(0.25) WITHIN GROUP (ORDER BY len)", "percentile", ["len"], (0.25,)),
        ("percentile_cont(0.25) WITHIN GROUP (ORDER BY len DESC)", "percentile_down", ["len"], (0.25,)),
        ("percentile_disc(array(0.2, 1)) WITHIN GROUP (ORDER BY len)", "percentiles_disc", ["len"], (0.2, 1.0)),
        ("percentile_approx(len, array(0.2))", "approx_percentiles", ["len"], (0.2,)),
        ("any_value(len)", "first", ["len"], ()),
        ("array_agg(len)", "collect_list", ["len"], ()),
        ("array_agg(DISTINCT len)", "collect_set", ["len"], ()),
        ("collect_list(len) RESPECT NULLS", "collect_all", ["len"], ()),
        ("listagg(srcIP, ',')", "string_agg", ["srcIP"], (",",)),
        ("string_agg(srcIP) WITHIN GROUP (ORDER BY len DESC)", "string_agg", ["srcIP", "len"], (None, 3)),
        ("listagg(DISTINCT srcIP, '') WITHIN GROUP (ORDER BY srcIP)", "string_agg_distinct", ["srcIP"], ("", 0)),
        ("mode() WITHIN GROUP (ORDER BY len DESC)", "mode", ["len"], (True,)),
        ("stddev(DISTINCT len)", "stddev_samp_distinct", ["len"], ()),
        ("bit_and(DISTINCT len)", "bit_and", ["len"], ()),
        ("try_sum(len)", "try_sum", ["len"], ()),
        ("try_avg(len)", "avg", ["CAST(len AS DOUBLE)"], ()),
        ("histogram_numeric(len, 5)", "histogram_numeric", ["len"], (5,)),
        ("bool_and(len > 1)", "bool_and", ["(len > 1)"], ()),
        ("every(len > 1)", "bool_and", ["(len > 1)"], ()),
        ("bool_or(len > 1)", "bool_or", ["(len > 1)"], ()),
        ("any(len > 1)", "bool_or", ["(len > 1)"], ()),
        ("some(len > 1)", "bool_or", ["(len > 1)"], ()),
    ],
)
def test_aggregates_have_many_spellings(
    text: str, function: str, arguments: list[str], parameters: tuple[float, ...]
) -> None:
    found = called(text)
    assert (found.function, [str(each) for each in found.arguments]) == (function, arguments)
    assert (found.parameters, found.where) == (parameters, None)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("count(*) FILTER (WHERE len > 1)", "(len > 1)"),
        ("count(DISTINCT srcIP) FILTER (WHERE len > 1)", "(len > 1)"),
        ("max_by(srcIP, len) FILTER (WHERE len > 1)", "(len > 1)"),
        ("count_if(len > 1)", "(len > 1)"),
        ("count_if(len > 1) FILTER (WHERE len < 9)", "((len < 9) AND (len > 1))"),
        ("first(len) IGNORE NULLS", "(NOT (len IS NULL))"),
        ("last(len, TRUE)", "(NOT (len IS NULL))"),
        ("first(len) FILTER (WHERE len > 1) IGNORE NULLS", "((len > 1) AND (NOT (len IS NULL)))"),
    ],
)
def test_some_rows_only(text: str, where: str) -> None:
    assert str(called(text).where) == where


def test_the_same_aggregate_over_other_rows_is_another_one() -> None:
    found = root(
        f"SELECT count(*) AS a, count(*) FILTER (WHERE len > 1) AS b, count_if(len > 1) AS c FROM main1 {WINDOW}"
    )
    (aggregate,) = [each for each in walk(found) if isinstance(each, Aggregate)]
    assert len(aggregate.aggregations) == 2


def test_results_are_named_after_the_aggregate() -> None:
    items = "count(DISTINCT len), stddev(len), count_if(len > 1), max_by(srcIP, len), count(*) FILTER (WHERE len > 1)"
    expected = ["count_distinct_len", "stddev_len", "count_if", "c4", "count"]
    assert names(f"SELECT {items} FROM main1 {WINDOW}") == expected


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("percentile(len, 1.5)", "a constant from 0 to 1", "1.5"),
        ("percentile(len, len)", "a constant from 0 to 1", "len"),
        ("approx_percentile(len, array(0.1, 2))", "a constant from 0 to 1", "array(0.1, 2)"),
        ("histogram_numeric(len, 1)", "at least 2", "1"),
        ("string_agg(srcIP, srcIP)", "not a constant text", "srcIP"),
        ("sum(len) WITHIN GROUP (ORDER BY len)", "takes no WITHIN", "sum(len) WITHIN GROUP (ORDER BY len)"),
        ("percentile(len)", '"percentile" takes 2 arguments, not 1', "percentile(len)"),
        ("percentile_cont(0.5)", '"percentile_cont" needs one WITHIN GROUP', "percentile_cont(0.5)"),
        ("max_by(len)", '"max_by" takes 2 arguments, not 1', "max_by(len)"),
        ("first(DISTINCT len)", '"first" does not take DISTINCT', "first(DISTINCT len)"),
        ("count(DISTINCT *)", "takes columns", "count(DISTINCT *)"),
        ("sum(len) IGNORE NULLS", "only allowed with first, last", "sum(len) IGNORE NULLS"),
        ("first(len, len)", "is TRUE or FALSE", "len"),
        ("count_if(len)", 'the argument of "count_if" is INT', "len"),
        ("bool_and(len)", 'the argument of "bool_and" is INT', "len"),
        ("sum(srcIP) FILTER (WHERE len > 1)", '"sum" takes a number', "sum(srcIP) FILTER (WHERE len > 1)"),
        ("count(*) FILTER (WHERE len)", "the condition of FILTER is INT", "len"),
        ("count(*) FILTER (WHERE count(*) > 1)", "not allowed here", "count(*)"),
        (
            "upper(srcIP) FILTER (WHERE len > 1)",
            "not an aggregate that is allowed here",
            "upper(srcIP) FILTER (WHERE len > 1)",
        ),
    ],
)
def test_a_wrong_call_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refusal(f"SELECT {text} AS x, count(*) AS n FROM main1 {WINDOW}")
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


def test_several_columns_are_counted_where_none_is_null() -> None:
    found = called("count(DISTINCT len, srcIP)")
    assert (found.function, str(found.arguments[0])) == ("count_distinct", "named_struct('c0', len, 'c1', srcIP)")
    assert str(found.where) == "((NOT (len IS NULL)) AND (NOT (srcIP IS NULL)))"
    assert called("count(len, srcIP)").arguments == ()
