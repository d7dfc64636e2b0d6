"""Texts that from_json cannot read: null, counted per query on every host; FAILFAST fails the run with the row."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import RunError
from millrace.testing.hosts import Host
from tests.e2e.commands import millrace

SQL = """
CREATE STREAM s (id INT, t STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
CREATE QUERY fields AS SELECT id, from_json(t, 'a INT, d DATE').a AS a, from_json(t, 'a INT, d DATE').d AS d FROM s;
CREATE QUERY windows AS
  SELECT sum(from_json(t, 'a INT').a) AS a FROM s [RANGE 20 SECONDS SLIDE 20 SECONDS] WHERE id % 2 = 0;
CREATE QUERY above AS
  SELECT id, from_json(texts[0], 'a INT').a AS a FROM
    (SELECT collected AS id, array(json) AS texts FROM
      (SELECT min(id) AS collected, min_by(t, id) AS json FROM s [RANGE 20 SECONDS SLIDE 20 SECONDS]));
CREATE QUERY guarded AS SELECT CASE WHEN id >= 30 THEN from_json(t, 'a INT').a END AS a FROM s;
CREATE QUERY plain AS SELECT id FROM s;
"""
TEXTS = ['{"a": 1}', "{oops", None, '{"a": 2, "d": "2026-02-30"}', '{"a": "x"}', "[1]", '{"a": 3, "d": "2026-01-02"}']
BAD, BAD_DATE = {"{oops", '{"a": "x"}', "[1]"}, {'{"a": 2, "d": "2026-02-30"}'}
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def given() -> list[str | None]:
    draw = random.Random(19)
    return [draw.choice(TEXTS) for _ in range(60)]


def expected() -> dict[str, int]:
    texts = given()
    return {
        "fields": sum(each in BAD | BAD_DATE for each in texts),
        "windows": sum(each in BAD for each in texts[::2]),
        "above": sum(each in BAD for each in texts[::20]),
        "guarded": sum(each in BAD for each in texts[30:]),
    }


def rows() -> pa.Table:
    times = [START + dt.timedelta(seconds=second) for second in range(60)]
    ids, kind = pa.array(range(60), pa.int32()), pa.timestamp("us", "UTC")
    return pa.table({"id": ids, "t": given(), "ts": pa.array(times, kind)})


def test_texts_that_are_malformed_are_counted_per_query(host: Host) -> None:
    run = host.open(SQL, {"s": [rows().slice(start, 7) for start in range(0, 60, 7)]})
    report = run.run()
    assert dict(report.malformed) == expected()
    assert min(expected().values()) > 0


FILES = """
CREATE STREAM s (id INT, t STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM json OPTIONS (path 'in');
CREATE SINK out TO json OPTIONS (path 'out');
CREATE QUERY q INTO out AS SELECT id, from_json(t, 'a INT').a AS a FROM s;
"""


def test_counts_go_on_after_a_restart_and_stand_in_the_summary(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "q.sql").write_text(FILES)
    for number, (texts, count) in enumerate([(["{oops", "{}"], 1), (["{oops", "nope", '{"a": 1}'], 3)]):
        lines = [
            {"id": place, "t": text, "ts": f"2026-01-01T00:0{number}:0{place}"} for place, text in enumerate(texts)
        ]
        (tmp_path / "in" / f"{number}.json").write_text("".join(json.dumps(each) + "\n" for each in lines))
        ended = millrace("run", "q.sql", "--on", "local", "--checkpoint", "kept", "--available-now", folder=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert f"q: {count} malformed in from_json" in ended.stderr


def test_failfast_fails_the_run_and_names_the_row() -> None:
    net = mr.Network()
    given = [{"id": 1, "t": "{oops", "ts": START}, {"id": 2, "t": '{"a": 1}', "ts": START}]
    stream = net.stream("s", "id INT, t STRING, ts TIMESTAMP", time="ts", source=given)
    strict = "from_json(t, 'a INT', map('mode', 'FAILFAST')).a"
    net.query("q", stream.select(a=f"CASE WHEN id = 2 THEN {strict} END"))
    assert net.run(on="virtual").wait().results("q").to_pydict() == {"a": [None, 1]}
    net.query("r", stream.select(a=strict))
    with pytest.raises(RunError, match=r"malformed: {oops; the row is id = 1, t = {oops"):
        net.run(on="virtual").wait()
