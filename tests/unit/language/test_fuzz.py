"""Whatever the text, only our own errors escape."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.errors import MillraceError
from millrace.language import bind_expression, parse_interval, parse_network
from tests.unit.language.expressions.test_expression_binder import ROW
from tests.unit.language.scripts import STREAMS

QUERIES = """
SELECT srcIP, count(*) AS n FROM control UNION main1 UNION main2 [RANGE 5 MINUTES SLIDE 1 MINUTE WA ts] GROUP BY srcIP;
CREATE QUERY q WITH (strategy = 'dfs') AS SELECT upper(srcIP) u, sum(len) / count(*) FROM main1 [RANGE 1 s SLIDE 1 s]
WHERE len > 5 AND ts < '2024-01-01' GROUP BY 1 HAVING count(*) > 3 ORDER BY window_end;
SELECT CASE WHEN len IN (1, 2) THEN 'a' ELSE CAST(len AS STRING) || 'b' END, EXTRACT(HOUR FROM ts), m.* FROM main1 m;
SELECT window.start, max(len) FROM main1 GROUP BY window(ts, '1 minute', '30 seconds');
SELECT count(*) FROM TABLE(TUMBLE(TABLE main1, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start;
CREATE STREAM s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS) ETS ON DEMAND SKEW 9 s
FROM csv OPTIONS (path 'x', a.b = 3) REPLAY BY ts SPEED 2;
SELECT m1.len, m2.*, ts FROM main1 [RANGE 3 MINUTES WA ts] AS m1, main2 [RANGE 2 MINUTES] AS m2 WHERE m1.srcIP = m2.dest
ORDER BY ts WITH (join = 'adaptive', alpha = 0.3);
SELECT x.ts, count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA x.ts] FROM control x LEFT JOIN main1 y ON x.len = y.len AND
y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS JOIN other z USING (srcIP) WHERE z.ts = x.ts
WINDOW 5 MINUTES GROUP BY x.ts;
SELECT p.*, c.len FROM main1 AS p ASOF LEFT JOIN main2 AS c MATCH_CONDITION (p.ts >= c.at) ON c.source = p.srcIP;
SELECT * FROM control a SEQ main1 b SEQ other c ON a.len = b.len MODE CHRONICLE OUTER WITHIN 5 MINUTES WHERE b.len = 3;
SELECT a.len FROM control [ROWS 10] a, main1 [ROWS 5 PARTITION BY srcIP] b WHERE a.len = b.len AND a.ts = b.ts;
SELECT x.len FROM (SELECT len, ts FROM main1 UNION ALL SELECT len, at FROM main2) AS x WHERE x.len BETWEEN 1 AND 2
""".strip().split(";")
PIECES = r"""
SELECT FROM WHERE UNION [ ] ( ) , . * ; ' " ` -- /* */ :: -> => @ ? : { } $ # ! ~ | & ^ < > = + - / % \
INTERVAL AS BY ORDER GROUP HAVING WITH OVER FILTER DISTINCT NOT NULL IS IN LIKE CASE END CAST EXISTS ANY ALL ROWS
JOIN LEFT FULL CROSS ASOF SEQ MODE RECENT USING ON WITHIN MATCH_CONDITION WINDOW m1.ts x.len
RANGE SLIDE WA TABLE TUMBLE DESCRIPTOR window len ts main1 count sum 1 0 1e400 99999999999999999999 0x1F x'zz' 5s
'a' NULL TRUE CREATE STREAM SINK QUERY DROP TIMESTAMP LATENT ETS SKEW array map struct LATERAL PIVOT VALUES é 🌊
"""
WORDS = [*PIECES.split(), "\x00"]


def survives(text: str) -> None:
    try:
        parse_network(text)
    except MillraceError as error:
        assert error.hint, error
        assert error.place is not None, error
        assert str(error)


def mutated(text: str, chance: random.Random) -> str:
    words = text.split(" ")
    for _ in range(chance.randint(1, 3)):
        position = chance.randrange(len(words))
        match chance.randrange(4):
            case 0:
                del words[position]
            case 1:
                words.insert(position, chance.choice(WORDS))
            case 2:
                words[position] = chance.choice(WORDS)
            case _:
                other = chance.randrange(len(words))
                words[position], words[other] = words[other], words[position]
        words = words or [""]
    return " ".join(words)


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_query_is_accepted_or_refused_in_our_words(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        survives(f"{mutated(chance.choice(QUERIES), chance)};{STREAMS}")


@pytest.mark.slow
def test_every_beginning_of_a_query_is_accepted_or_refused_in_our_words() -> None:
    for text in QUERIES:
        words = text.split(" ")
        for length in range(len(words)):
            survives(STREAMS + " ".join(words[:length]))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_words_are_an_expression_or_refused_in_our_words(text: str) -> None:
    try:
        bind_expression(text, ROW.schema)
    except MillraceError as error:
        assert error.hint


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_an_interval_or_a_script_or_refused_in_our_words(text: str) -> None:
    survives(text)
    try:
        parse_interval(text)
    except MillraceError as error:
        assert error.hint
