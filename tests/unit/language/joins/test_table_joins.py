from __future__ import annotations

import pytest

from millrace.errors import MillraceError
from millrace.language import bind_changes, parse_network
from millrace.plan.explain.labels import label
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter
from millrace.plan.nodes.table_nodes import TableJoin
from millrace.plan.physical.stages import physical

DECLARED = """
CREATE STREAM clicks (user_id BIGINT, url STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'c.csv');
CREATE STREAM views (user_id BIGINT, page STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'v.csv');
CREATE STREAM prices (user_id BIGINT, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (user_id) FROM csv OPTIONS (path 'p.csv');
CREATE TABLE users (id INT PRIMARY KEY, name STRING, country STRING, len INT, tags ARRAY<STRING>)
  FROM parquet OPTIONS (path 'u.parquet') REFRESH EVERY INTERVAL 1 HOUR;
CREATE TABLE bots (id BIGINT, score DOUBLE, PRIMARY KEY (id)) FROM json OPTIONS (path 'b.json');
CREATE TABLE marks (user_id BIGINT, mark STRING) FROM csv OPTIONS (path 'm.csv');
"""


def root(select: str) -> Node:
    return physical(parse_network(f"{DECLARED}{select}")).roots[0][1]


def joins(select: str) -> list[TableJoin]:
    return [each for each in walk(root(select)) if isinstance(each, TableJoin)]


def columns(select: str) -> list[str]:
    return parse_network(f"{DECLARED}{select}").queries[0].root.column_names()


def refused(statement: str) -> MillraceError:
    with pytest.raises(MillraceError) as raised:
        parse_network(f"{DECLARED}{statement}")
    return raised.value


def test_an_equality_is_a_key_and_what_is_about_the_table_alone_chooses_among_its_rows() -> None:
    select = """SELECT c.ts, u.name FROM clicks c JOIN users u
      ON c.user_id = u.id AND u.country = 'de' AND c.len > u.len WHERE url <> 'x' AND u.name > 'a'"""
    [join] = joins(select)
    assert [(str(value), column) for value, column in join.keys] == [("c.user_id", "id")]
    assert str(join.where) == "(country = 'de')"
    assert "c.len > u.len" in str(join.condition)
    # A condition on the stream alone stands below, where it leaves less to look up.
    below = [str(each.predicate) for each in walk(join.input) if isinstance(each, Filter)]
    assert below == ["(url <> 'x')"]
    assert {name for name, _ in join.columns} == {"u.id", "u.name", "u.len"}, "other columns are not looked up"


FORMS = """
SELECT * FROM clicks c JOIN bots b ON c.user_id = b.id -> user_id, url, len, ts, id, score
SELECT * FROM clicks JOIN marks USING (user_id) -> user_id, url, len, ts, mark
SELECT * FROM clicks NATURAL JOIN marks -> user_id, url, len, ts, mark
SELECT u.*, c.len FROM clicks c LEFT JOIN users u ON id = user_id -> id, name, country, u_len, tags, c_len
SELECT c.ts, b.score FROM clicks c, bots b WHERE c.user_id = b.id -> ts, score
SELECT url FROM clicks c JOIN users u ON upper(c.url) = u.name -> url
SELECT c.ts, name, score, mark FROM clicks c JOIN users u ON c.user_id = u.id LEFT JOIN bots b ON b.id = u.len
  LEFT JOIN marks m ON m.user_id = c.user_id AND m.mark <> u.name -> ts, name, score, mark
SELECT window_start, country, count(*) AS n FROM clicks [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] c
  JOIN users u ON c.user_id = u.id GROUP BY country -> window_start, country, n
SELECT x.n, u.name FROM (SELECT user_id, count(*) AS n FROM clicks [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY user_id) x
  JOIN users u ON u.id = x.user_id -> n, name
SELECT c.ts, v.page, u.name FROM clicks c JOIN users u ON c.user_id = u.id JOIN views v ON v.user_id = c.user_id
  AND v.ts BETWEEN c.ts AND c.ts + INTERVAL 5 SECONDS WHERE u.country = 'de' -> ts, page, name
SELECT user_id, price, name FROM prices p JOIN users u ON p.user_id = u.id -> user_id, price, name
"""


@pytest.mark.parametrize("form", FORMS.strip().replace("\n  ", " ").splitlines())
def test_tables_are_joined_in_the_forms_that_joins_have(form: str) -> None:
    select, _, expected = form.partition(" -> ")
    assert ", ".join(columns(select)) == expected
    plan = physical(parse_network(f"{DECLARED}{select}"))
    plan.whole()
    for stream in plan.network.streams():
        plan.low(stream.name)


def test_in_and_not_in_read_a_column_of_a_table() -> None:
    select = """SELECT url FROM clicks WHERE user_id IN (SELECT id FROM users WHERE country = 'de')
      AND NOT user_id IN (SELECT b.id FROM bots AS b WHERE b.score > 0.5) AND len > 3"""
    second, first = sorted(joins(select), key=lambda each: each.kind, reverse=True)
    assert (first.kind, first.table.name, str(first.where)) == ("anti", "bots", "(score > 0.5)")
    assert (second.kind, second.table.name, str(second.where)) == ("semi", "users", "(country = 'de')")
    assert columns(select) == ["url"]


def test_a_table_as_of_the_time_of_the_row_is_the_table_and_a_stream_is_an_as_of_join() -> None:
    plain = "SELECT name FROM clicks c JOIN users u ON c.user_id = u.id"
    assert root(plain.replace("users u", "users FOR SYSTEM_TIME AS OF c.ts AS u")) == root(plain)
    keys = "c.user_id = v.user_id"
    for kind in ("", "LEFT "):
        written = f"SELECT page FROM clicks c {kind}JOIN views FOR SYSTEM_TIME AS OF c.ts AS v ON {keys}"
        assert root(written) == root(f"SELECT page FROM clicks c ASOF {kind}JOIN views v ON v.ts <= c.ts AND {keys}")


def test_explain_says_what_a_row_meets() -> None:
    [join] = joins("SELECT name FROM clicks c LEFT JOIN users u ON c.user_id = u.id AND u.country = 'de'")
    assert label(join) == (
        "left join table users on c.user_id = users.id, of its rows where (country = 'de'), read again every 1 HOUR: "
        "a row leaves at once"
    )


REFUSED = """
SELECT name FROM users | table "users" stands where a stream should | FROM stream AS s JOIN table
SELECT * FROM clicks c RIGHT JOIN users u ON u.id = c.user_id | RIGHT JOIN of table "users" | LEFT JOIN
SELECT * FROM clicks c ASOF JOIN users u ON u.id = c.user_id | ASOF JOIN of table "users" | write JOIN
SELECT * FROM clicks c JOIN users u ON c.len > u.len | which rows of table "users" | such as s.key = users.id
SELECT * FROM clicks c JOIN users [RANGE 5 MINUTES] u ON u.id = c.user_id | table "users" has a window | leave
SELECT * FROM clicks c JOIN users c ON c.id = c.user_id | two inputs are named "c" | AS t
SELECT * FROM clicks UNION users | table "users" is part of a union | JOIN
SELECT len FROM clicks c JOIN users u ON u.id = c.user_id | "len" exists in several inputs | c.len or u.len
SELECT url FROM clicks JOIN usr ON 1 = 1 | stream "usr" does not exist | mean "users"
SELECT url FROM clicks WHERE user_id IN (SELECT id FROM users GROUP BY id) | takes a column and WHERE | users WHERE
SELECT url FROM clicks WHERE user_id IN (SELECT id + 1 FROM users) | takes one column of it | SELECT column
SELECT url FROM clicks c JOIN users u ON u.id = c.user_id RIGHT JOIN views v ON v.ts = c.ts | RIGHT JOIN after | last
SELECT n FROM (SELECT count(*) AS n FROM clicks [ROWS 5 SLIDE 5]) x JOIN bots b ON b.id = x.n | ROWS window | below
SELECT user_id, mark FROM prices p JOIN marks m USING (user_id) | than its primary key | queue = 'append'
SELECT name FROM clicks c JOIN users FOR SYSTEM_TIME AS OF len AS u ON c.user_id = u.id | is not the time | leave FOR
SELECT page FROM clicks FOR SYSTEM_TIME AS OF ts | is for the second input | JOIN b FOR SYSTEM_TIME
SELECT page FROM clicks c FULL JOIN views FOR SYSTEM_TIME AS OF c.ts AS v ON c.user_id = v.user_id | JOIN or LEFT | JOIN
REFRESH TABLE users | REFRESH TABLE is for a running network | millrace control
CREATE TABLE t (a INT) | table "t" has no source | FROM csv
CREATE TABLE t (a INT) FROM kafka | a table cannot be read from "kafka" | csv, json, parquet, postgres, python
CREATE TABLE t (a INT, PRIMARY KEY (b)) FROM csv OPTIONS (path 'x') | column "b" does not exist | The columns are a
CREATE TABLE t (a ARRAY<INT> PRIMARY KEY) FROM json OPTIONS (path 'x') | part of the primary key | other columns
CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a)) FROM csv OPTIONS (path 'x') | two primary keys | PRIMARY KEY (a, b)
CREATE TABLE t (a INT, WATERMARK FOR a AS a) FROM csv | has no time of its own | CREATE STREAM
CREATE TABLE t (a INT) WITH ('connector' = 'filesystem') | stand after FROM | CREATE STREAM
CREATE TABLE t AS SELECT url FROM clicks | and no results | CREATE QUERY t
CREATE TABLE t (a INT) TIMESTAMP BY a FROM csv OPTIONS (path 'x') | has no time of its own | ASOF JOIN
CREATE TABLE t (a INT) FROM csv OPTIONS (path 'x') REFRESH EVERY INTERVAL 0 SECONDS | REFRESH EVERY takes | 1 HOUR
CREATE TABLE clicks (a INT) FROM csv OPTIONS (path 'x') | "clicks" is declared twice | another name
"""


@pytest.mark.parametrize("case", REFUSED.strip().splitlines())
def test_what_a_table_cannot_be_is_refused_with_what_to_write(case: str) -> None:
    statement, fact, hint = case.split(" | ")
    error = refused(statement)
    assert fact in error.fact and hint in error.hint and error.place is not None, f"{error}"


def test_refresh_names_a_table_that_queries_join() -> None:
    known = parse_network(
        f"{DECLARED}CREATE QUERY q AS SELECT name FROM clicks c JOIN users u ON c.user_id = u.id"
    ).queries
    [change] = bind_changes(DECLARED, "REFRESH TABLE Users", known).changes
    assert change.table == "users"  # type: ignore[union-attr]
    with pytest.raises(MillraceError, match='table "bots" is not used by any query'):
        bind_changes(DECLARED, "REFRESH TABLE bots", known)


def test_where_a_table_is_read_from_and_how_often_is_no_part_of_what_is_computed() -> None:
    query = """SELECT country, count(*) AS n FROM clicks [RANGE 1 MINUTE SLIDE 1 MINUTE] c
      JOIN users u ON c.user_id = u.id GROUP BY country"""
    other = DECLARED.replace("u.parquet", "elsewhere").replace("1 HOUR", "5 MINUTES").replace("len INT, tags", "tags")
    names = [set(physical(parse_network(f"{text}{query}")).whole().nodes) for text in (DECLARED, other)]
    assert names[0] == names[1]
    typed = DECLARED.replace("name STRING, country STRING", "name STRING, country INT")
    assert set(physical(parse_network(f"{typed}{query}")).whole().nodes) != names[0]
