from __future__ import annotations

import pytest

from millrace.errors import NotYet, QueryError
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Distinct, Filter, Project, Rank
from tests.unit.language.scripts import names, refusal, root

WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
COUNTS = f"SELECT window_start, window_end, srcIP, count(*) AS n FROM main1 {WINDOW} GROUP BY srcIP"
BY_WINDOW = "PARTITION BY window_start, window_end"
RANK = f"rank() OVER ({BY_WINDOW} ORDER BY n)"


def rank_of(found: Node) -> Rank:
    (rank,) = [each for each in walk(found) if isinstance(each, Rank)]
    return rank


def test_a_rank_stands_over_the_results_of_a_window() -> None:
    text = f"SELECT *, row_number() OVER ({BY_WINDOW} ORDER BY n DESC, srcIP) AS place FROM ({COUNTS})"
    assert names(text) == ["window_start", "window_end", "srcIP", "n", "place"]
    found = rank_of(root(text))
    assert (found.function, found.partition) == ("row_number", ("window_start", "window_end"))
    assert found.order == (("n", True), ("srcIP", False))
    assert found.limit is None


@pytest.mark.parametrize(
    ("condition", "limit", "filters"),
    [
        ("place <= 3", 3, 0),
        ("place < 3", 2, 0),
        ("place = 1", 1, 0),
        ("3 >= place", 3, 0),
        ("place = 2", 2, 1),
        ("place <= 3 AND n > 1", 3, 1),
        ("place <= 3 AND place <= 2", 2, 0),
        ("place > 1", None, 1),
        ("place <= 3 OR n > 1", None, 1),
        ("place < 1", None, 1),
    ],
)
def test_a_condition_on_the_rank_is_its_limit(condition: str, limit: int | None, filters: int) -> None:
    ranked = f"SELECT *, rank() OVER ({BY_WINDOW} ORDER BY n DESC) AS place FROM ({COUNTS})"
    for text in (f"SELECT * FROM ({ranked}) WHERE {condition}", f"{ranked} QUALIFY {condition}"):
        found = root(text)
        assert rank_of(found).limit == limit
        assert sum(isinstance(each, Filter) for each in walk(found)) == filters


def test_a_rank_may_stand_beside_the_aggregates() -> None:
    text = (
        f"SELECT srcIP, count(*) AS n FROM main1 {WINDOW} GROUP BY srcIP "
        f"QUALIFY dense_rank() OVER (PARTITION BY window_start, upper(srcIP) ORDER BY count(*) DESC, n + 1) <= 2"
    )
    assert names(text) == ["srcIP", "n"]
    found = rank_of(root(text))
    assert isinstance(found.input, Project)
    assert (found.function, found.limit, found.partition) == ("dense_rank", 2, ("window_start", "o0"))
    assert found.order == (("a0", True), ("o1", False))


def test_a_rank_is_ordered_and_parted_by_names_of_the_select_list() -> None:
    head = f"SELECT upper(srcIP) AS ip, count(*) AS n, {{}} FROM main1 {WINDOW} GROUP BY ip"
    over = "rank() OVER (PARTITION BY window_start, window_end, {} ORDER BY {} DESC) AS r"
    by_name, by_value = over.format("ip", "N"), over.format("upper(srcIP)", "count(*)")
    assert root(head.format(by_name)) == root(head.format(by_value))
    first = f"SELECT {by_name}, upper(srcIP) AS ip, count(*) AS n FROM main1 {WINDOW} GROUP BY upper(srcIP)"
    assert names(first) == ["r", "ip", "n"], "the rank may stand before what it names"
    assert rank_of(root(f"{head.format(by_name)} QUALIFY r <= 2")).limit == 2
    outer = f"SELECT srcIP, n * 2 AS twice, rank() OVER ({BY_WINDOW} ORDER BY twice) AS r FROM ({COUNTS})"
    assert names(outer) == ["srcIP", "twice", "r"]


@pytest.mark.parametrize(
    ("items", "fact"),
    [
        (f"count(*) AS n, rank() OVER ({BY_WINDOW} ORDER BY r) AS r", "does not exist"),
        (
            f"rank() OVER ({BY_WINDOW} ORDER BY a) AS r, count(*) + b AS a, count(*) + a AS b",
            '"b" is a name of this select list, and is known after it',
        ),
    ],
)
def test_a_name_that_leads_back_to_itself_is_no_column(items: str, fact: str) -> None:
    assert fact in refusal(f"SELECT {items} FROM main1 {WINDOW}").fact


def test_a_rank_over_a_group_of_time_is_parted_by_it() -> None:
    text = (
        "SELECT date_format(ts, 'yyyy-MM-dd') AS d, srcIP, count(*) AS n FROM main1 GROUP BY d, srcIP "
        "QUALIFY row_number() OVER (PARTITION BY d ORDER BY n DESC) <= 3"
    )
    assert rank_of(root(text)).limit == 3


def test_a_rank_without_a_name_is_called_after_its_function() -> None:
    assert names(f"SELECT n, rank() OVER ({BY_WINDOW} ORDER BY n) FROM ({COUNTS})") == ["n", "rank"]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (f"SELECT row_number() OVER (ORDER BY n) FROM ({COUNTS})", "without the window in PARTITION BY"),
        (f"SELECT row_number() OVER (PARTITION BY srcIP ORDER BY n) FROM ({COUNTS})", "without the window"),
        (f"SELECT row_number() OVER ({BY_WINDOW}) FROM ({COUNTS})", "needs ORDER BY"),
        (f"SELECT rank() OVER ({BY_WINDOW} ORDER BY n NULLS LAST) FROM ({COUNTS})", "ranked as the least"),
        (
            f"SELECT rank() OVER ({BY_WINDOW} ORDER BY n), dense_rank() OVER ({BY_WINDOW} ORDER BY n) FROM ({COUNTS})",
            "two ranks",
        ),
        (f"SELECT n FROM ({COUNTS}) QUALIFY n > 1", "the select has none"),
    ],
)
def test_a_wrong_rank_is_refused(text: str, fact: str) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint and error.place is not None


@pytest.mark.parametrize(
    ("text", "offending"),
    [
        (f"SELECT n FROM ({COUNTS}) WHERE {RANK} = 1", RANK),
        (f"SELECT n FROM ({COUNTS}) WHERE rank() OVER (ORDER BY max(n)) = 1", "rank() OVER (ORDER BY max(n))"),
        (f"{COUNTS} HAVING {RANK} = 1", RANK),
        (f"{COUNTS} HAVING n > 1 AND sum(n) OVER (ORDER BY n) > 1", "sum(n) OVER (ORDER BY n)"),
        (f"SELECT srcIP, count(*) AS n, {RANK} AS r FROM main1 {WINDOW} GROUP BY srcIP HAVING r = 1", "r"),
        (f"SELECT count(*) AS n FROM main1 {WINDOW} GROUP BY {RANK}", RANK),
        (f"SELECT {RANK} AS r, count(*) AS n FROM main1 {WINDOW} GROUP BY r", RANK),
        (f"SELECT count(*) AS n FROM main1 {WINDOW} GROUP BY rank() OVER (ORDER BY count(*))", "rank() OVER (ORDER BY"),
    ],
)
def test_a_rank_that_chooses_outside_qualify_is_refused(text: str, offending: str) -> None:
    error = refusal(text)
    assert "a function with OVER is not allowed here" in error.fact
    assert "QUALIFY" in error.hint
    assert error.place is not None and error.place.text.startswith(offending)


def test_other_functions_with_over_are_not_there_yet() -> None:
    assert isinstance(refusal(f"SELECT sum(n) OVER ({BY_WINDOW}) FROM ({COUNTS})"), NotYet)


# DISTINCT


def test_distinct_over_a_window_is_its_keys() -> None:
    assert root(f"SELECT DISTINCT srcIP FROM main1 {WINDOW}") == root(
        f"SELECT srcIP FROM main1 {WINDOW} GROUP BY srcIP"
    )
    by_day = "SELECT {} to_date(ts) AS d, srcIP FROM main1 {}"
    assert root(by_day.format("DISTINCT", "")) == root(by_day.format("", "GROUP BY d, srcIP"))


@pytest.mark.parametrize(
    "text",
    ["SELECT DISTINCT srcIP, ts FROM main1", "SELECT DISTINCT * FROM main1", f"SELECT DISTINCT * FROM ({COUNTS})"],
)
def test_distinct_rows_with_their_time_are_forgotten_in_time(text: str) -> None:
    assert isinstance(root(text), Distinct)


def test_distinct_rows_without_their_time_are_refused() -> None:
    error = refusal("SELECT DISTINCT srcIP FROM main1")
    assert "never ends" in error.fact
    assert "FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE], or select ts as well" in error.hint
    assert error.place is not None and error.place.text == "DISTINCT"
