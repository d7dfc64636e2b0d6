"""As-of joins and sequences: which row before each, by which keys, how far back."""

from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.plan.nodes.join_nodes import Following
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.relational_nodes import Filter, OrderByTime
from tests.unit.language.scripts import names, query, refusal, root

MINUTE = 60_000_000
MINUTES = "SELECT window_start, window_end, count(*) AS n FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE]"
TRUNCATED = "SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM main1 GROUP BY m"


def following(text: str) -> Following:
    return [each for each in walk(root(text)) if isinstance(each, Following)][-1]


@pytest.mark.parametrize(
    ("text", "within", "strict", "outer"),
    [
        ("ASOF JOIN control a ON a.ts <= b.ts AND a.len = b.len", None, False, False),
        ("ASOF JOIN control a ON b.ts >= a.ts AND b.len = a.len", None, False, False),
        ("ASOF JOIN control a ON a.ts < b.ts AND a.len = b.len", None, True, False),
        ("ASOF LEFT JOIN control a ON a.len = b.len AND b.ts > a.ts", None, True, True),
        ("LEFT ASOF JOIN control a ON a.ts <= b.ts AND a.len = b.len", None, False, True),
        ("ASOF JOIN control a MATCH_CONDITION (b.ts >= a.ts) ON a.len = b.len", None, False, False),
        ("ASOF JOIN control a MATCH_CONDITION (b.ts > a.ts) USING (len)", None, True, False),
        ("ASOF JOIN control a ON a.ts <= b.ts AND a.len = b.len AND a.ts >= b.ts - INTERVAL 1 MINUTE", MINUTE, False,
         False),
        ("ASOF JOIN control a ON a.ts BETWEEN b.ts - INTERVAL 1 MINUTE AND b.ts AND a.len = b.len", MINUTE, False,
         False),
        ("ASOF JOIN control a ON a.ts <= b.ts AND b.ts - a.ts < INTERVAL 1 MINUTE AND a.len = b.len", MINUTE - 1, False,
         False),
    ],
)  # fmt: skip
def test_an_as_of_join_looks_back_from_each_row(text: str, within: int | None, strict: bool, outer: bool) -> None:
    found = following(f"SELECT b.len, a.srcIP FROM main1 b {text}")
    assert found.keys == (("b.len",), ("a.len",))
    assert (found.mode, found.within, found.strict, found.outer) == ("recent", within, strict, outer)
    assert found.schema.names[0] == "b.srcIP", "the rows that are answered come first"


def test_results_of_a_window_are_in_force_after_its_end() -> None:
    inner = "SELECT window, srcIP, count(*) AS n FROM control [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY srcIP"
    found = following(
        f"SELECT b.len, w.n FROM main1 b ASOF JOIN ({inner}) w ON w.window_end <= b.ts AND w.srcIP = b.srcIP"
    )
    assert found.strict, "their own time is the last instant of the window"


def test_where_chooses_among_the_pairs_of_an_as_of_join() -> None:
    text = "SELECT b.len FROM main1 b ASOF JOIN control a ON a.ts <= b.ts WHERE a.len > 3 AND b.len > 4"
    below = [str(each.predicate) for each in walk(following(text)) if isinstance(each, Filter)]
    every = [str(each.predicate) for each in walk(root(text)) if isinstance(each, Filter)]
    assert below == ["(len > 4)"]
    assert every[-1] == "(a.len > 3)"


def test_the_time_of_a_pair_is_that_of_the_row_that_is_answered() -> None:
    text = "FROM main1 b ASOF JOIN control a ON a.ts <= b.ts"
    assert isinstance(root(f"SELECT b.ts {text} ORDER BY ts"), OrderByTime)
    assert root(f"SELECT b.ts, count(*) AS n {text} GROUP BY b.ts")
    assert "cannot be the time" in refusal(f"SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA a.ts] {text}").fact


# SEQ


def test_a_sequence_gives_columns_in_the_order_of_the_text() -> None:
    text = "SELECT * FROM control a SEQ main2 b MODE RECENT WHERE a.len = b.len"
    assert names(text) == ["srcIP", "destIP", "a_len", "ts", "source", "dest", "b_len", "at"]
    found = following(text)
    assert found.keys == (("b.len",), ("a.__key0",))
    assert (found.mode, found.within, found.outer) == ("recent", None, False)
    assert found.inputs[0].schema.names[0] == "b.source"


def test_sequences_of_several_streams_are_composed_from_left_to_right() -> None:
    keys = "a.len = b.len AND b.srcIP = c.srcIP"
    text = "SELECT c.ts FROM control a SEQ main1 b SEQ other c {} MODE CHRONICLE{} WITHIN INTERVAL 5 MINUTES {}"
    kept = following(text.format("", "", f"WHERE {keys}"))
    assert kept.keys == (("c.srcIP",), ("b.srcIP",))
    inner = kept.inputs[1]
    assert isinstance(inner, Following)
    assert inner.keys == (("b.len",), ("a.len",))
    assert [each.within for each in (kept, inner)] == [5 * MINUTE, 5 * MINUTE]
    outer = following(text.format(f"ON {keys}", " OUTER", ""))
    assert outer.keys == kept.keys
    below = outer.inputs[1]
    assert isinstance(below, Following)
    assert [outer.outer, below.outer] == [True, False]


def test_on_says_the_keys_of_an_outer_sequence() -> None:
    found = following("SELECT b.ts FROM control a SEQ main1 b ON a.len = b.len MODE RECENT OUTER WITHIN 5 MINUTES")
    assert found.keys == (("b.len",), ("a.len",))
    assert found.outer


@pytest.mark.parametrize("condition", ["a.len <=> b.len", "a.len = b.len OR a.srcIP = b.srcIP", "a.len < b.len"])
@pytest.mark.parametrize("outer", ["", " OUTER"])
def test_what_is_no_equality_between_streams_chooses_among_the_results_of_a_sequence(
    condition: str, outer: str
) -> None:
    text = f"SELECT b.ts FROM control a SEQ main1 b MODE CHRONICLE{outer} WITHIN 5 MINUTES WHERE {condition}"
    found = following(text)
    assert found.keys == ((), ())
    assert [each for each in walk(root(text)) if isinstance(each, Filter)], "it stands above"


def test_conditions_of_a_sequence_go_below_only_where_they_keep_their_meaning() -> None:
    text = "SELECT b.ts FROM control a SEQ main1 b MODE {} WITHIN 5 MINUTES WHERE a.len > 3 AND b.len > 4"
    for mode, expected in (("RECENT", ["(len > 4)"]), ("CHRONICLE", [])):
        found = following(text.format(mode))
        assert [str(each.predicate) for each in walk(found) if isinstance(each, Filter)] == expected


def test_a_chronicle_is_bounded_by_time_or_by_a_number_of_rows() -> None:
    text = "SELECT * FROM control a SEQ main1 b MODE CHRONICLE"
    assert following(f"{text} WITHIN 5 MINUTES").within == 5 * MINUTE
    assert query(f"{text} WITH (state_limit = 1000)").options == {"state_limit": "1000"}


@pytest.mark.parametrize(
    ("text", "fact", "hint", "place"),
    [
        ("main1 b ASOF JOIN control a ON a.ts >= b.ts", 'rows of "a" after those of "b"',
         "write a.ts <= b.ts", "ASOF"),
        ("main1 b ASOF JOIN control a ON a.len = b.len", "does not say which rows", "ON a.ts <= b.ts",
         "ASOF"),
        ("main1 b ASOF JOIN control a", "does not say which rows", "ON a.ts <= b.ts", "ASOF"),
        ("main1 b ASOF JOIN control a ON a.ts <= b.ts - INTERVAL 1 SECOND", "does not say which rows",
         "without another interval", "ASOF"),
        ("main1 b ASOF JOIN control a ON a.ts <= b.ts AND a.len > 3", "takes equal columns", "WHERE",
         "a.len > 3"),
        ("main1 b ASOF JOIN control a ON a.ts <= b.ts AND a.len < b.len", "takes equal columns",
         "a subquery", "a.len < b.len"),
        ("main1 b ASOF JOIN control a ON a.ts <= b.ts AND a.ts >= b.ts + INTERVAL 1 SECOND",
         "no row is as far back", "a.ts >= b.ts -", "ASOF"),
        ("main1 b ASOF RIGHT JOIN control a ON a.ts <= b.ts", "cannot be RIGHT", "ASOF LEFT JOIN",
         "ASOF"),
        ("main1 b ASOF JOIN control [RANGE 1 MINUTE] a ON a.ts <= b.ts", "an as-of join cannot have a window",
         "a.ts >= b.ts - INTERVAL", "[RANGE 1 MINUTE]"),
        ("main1 [RANGE 1 MINUTE] b ASOF JOIN control a ON a.ts <= b.ts", "an as-of join cannot have a window",
         "leave the window out", "[RANGE 1 MINUTE]"),
        ("main1 b ASOF JOIN control a USING (len)", "does not say which rows",
         "MATCH_CONDITION (a.ts <= b.ts) before USING", "ASOF"),
        (f"({MINUTES}) w ASOF JOIN control a ON a.ts <= w.window_end", "does not say which rows",
         "ON a.ts < w.window_end,", "ASOF"),
        (f"({TRUNCATED}) w ASOF JOIN control a ON a.ts <= w.m", "does not say which rows",
         "ON a.ts < w.m + INTERVAL 1 MINUTE,", "ASOF"),
        (f"control a ASOF JOIN ({TRUNCATED}) w ON w.m <= a.ts", "does not say which rows",
         "ON w.m <= a.ts - INTERVAL 1 MINUTE,", "ASOF"),
        (f"({TRUNCATED.replace('minute', 'month')}) w ASOF JOIN control a ON a.ts <= w.m",
         'no column of "w" holds the time', "window_end", "a.ts <= w.m"),
        ("main1 b ASOF JOIN control a ON a.ts BETWEEN b.ts - INTERVAL 2000000 DAYS AND b.ts", "too far back",
         "1,000,000 days", "ASOF"),
        ("control a SEQ main1 b MODE CHRONICLE OUTER WITHIN 5 MINUTES WHERE b.len > 3 AND a.len = b.len",
         "WHERE cannot match", "into ON, before MODE", "a.len = b.len"),
        ("control SEQ main1 MODE RECENT WITHIN 2000000 DAYS", "WITHIN is too long", "1,000,000 days",
         "2000000 DAYS"),
        ("control SEQ main1 MODE RECENT, other", "a sequence cannot be joined", "subquery", ","),
        ("control SEQ main1 MODE RECENT JOIN other c ON c.ts = main1.ts", "a sequence cannot be joined",
         "subquery", "JOIN"),
        ("control SEQ main1 USING (len) MODE RECENT", "USING is not allowed in a sequence", "in this order", "USING"),
        ("control SEQ main1 WITHIN 5 MINUTES MODE RECENT", "expected MODE", "in this order", "WITHIN"),
        ("control a SEQ main1 b ON a.len = b.len SEQ other c ON c.len = b.len MODE RECENT", "expected MODE",
         "in this order", "SEQ"),
        ("control SEQ main1", "expected MODE", "MODE RECENT", ""),
        ("control SEQ main1 MODE LATEST", "expected RECENT or CHRONICLE", "MODE RECENT", "LATEST"),
        ("control SEQ main1 MODE CHRONICLE", "for ever", "WITHIN INTERVAL 5 MINUTES", "MODE CHRONICLE"),
        ("control SEQ main1, other MODE RECENT", "SEQ cannot be combined with another join", "subquery", ","),
        ("control a SEQ main1 b ON a.len < b.len MODE RECENT", "takes only equal columns", "WHERE",
         "a.len < b.len"),
        ("control [RANGE 1 MINUTE] a SEQ main1 b MODE RECENT", "a sequence cannot have a window",
         "WITHIN", "[RANGE 1 MINUTE]"),
    ],
)  # fmt: skip
def test_a_wrong_sequence_is_refused_at_its_place(text: str, fact: str, hint: str, place: str) -> None:
    error = refusal(f"SELECT 1 AS n FROM {text}")
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint and hint in error.hint
    assert error.place is not None
    assert error.place.text == place


@pytest.mark.parametrize(
    "text",
    [
        "control a SEQ main1 b MODE RECENT",
        "main1 b ASOF JOIN control a ON a.ts <= b.ts",
        "control [ROWS 5 PARTITION BY destIP] a, main1 [ROWS 5] b WHERE a.destIP = b.destIP",
    ],
)
def test_what_is_kept_of_each_key_can_be_limited(text: str) -> None:
    assert query(f"SELECT b.len FROM {text} WITH (state_limit = 3)").options == {"state_limit": "3"}
