"""Where queries and their clauses stand in a text."""

from __future__ import annotations

from millrace.language import query_places

TEXT = """-- a file
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM json OPTIONS (path 'in');
CREATE QUERY counts WITH (strategy = 'bfs') AS
  SELECT k, count(*) AS n FROM (SELECT k FROM s WHERE v > 1) [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]
  WHERE k <> 'x' GROUP BY k;
INSERT INTO kept SELECT * FROM s ORDER BY ts;
SELECT k FROM s"""


def test_each_statement_with_a_name_has_its_place() -> None:
    places = query_places(TEXT)
    assert [place.query for place in places] == ["s", "counts", "kept", "query_1"]
    assert TEXT[slice(*places[0].span)].startswith("CREATE STREAM s") and places[0].clauses == {}


def test_clauses_end_where_the_next_begins_and_those_in_parentheses_are_part_of_others() -> None:
    (_, counts, kept, _) = query_places(TEXT)
    texts = {name: " ".join(TEXT[slice(*span)].split()) for name, span in counts.clauses.items()}
    assert texts["where"] == "WHERE k <> 'x'" and texts["group"] == "GROUP BY k"
    assert texts["from"].startswith("FROM (SELECT k FROM s WHERE v > 1)")
    assert TEXT[slice(*kept.clauses["order"])] == "ORDER BY ts"
