"""What is found out of messages of a topic, without a broker: they are given as they would be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.survey.findings_text import findings_text
from millrace.survey.proposal import Proposal, topic_proposal
from millrace.survey.script_text import script_text
from millrace.survey.topic_messages import MESSAGE, TopicMessages

AT = 1_767_225_600_000_000
Values = Sequence[str | bytes | None]


def found(partitions: Mapping[int, Values] | Values, key: str | bytes | None = None, whole: bool = True) -> Proposal:
    """What is found of values by partition; the time of each message is a second after the one before it."""
    given = partitions if isinstance(partitions, Mapping) else {0: partitions}
    tables = {}
    for number, values in given.items():
        data = [value.encode() if isinstance(value, str) else value for value in values]
        times = [AT + at * 1_000_000 for at in range(len(data))]
        keys = [key.encode() if isinstance(key, str) else key] * len(data)
        tables[f"t/{number}"] = pa.table([data, keys, times], schema=MESSAGE)
    options = {"bootstrap_servers": "localhost:9092", "topic": "shop.clicks"}
    return topic_proposal(TopicMessages("kafka://localhost:9092/shop.clicks", options, tables, whole))


def script(proposal: Proposal) -> str:
    """The script, which is one that can be bound."""
    text = script_text(proposal, "x.sql")
    mr.Network().sql(text)
    return text


def event(second: int, **values: Any) -> str:
    return json.dumps({"at": f"2026-01-01T00:00:{second:02d}Z", **values})


def test_json_has_types_a_time_and_the_disorder_of_each_partition() -> None:
    late = [event(second, n=second / 2) for second in (0, 9, 2, 10)]
    in_order = [event(second, n=1) for second in range(20, 24)]
    proposal = found({0: late, 1: in_order, 2: []}, key="a")
    text = script(proposal)
    assert "n DOUBLE" in text and "kafka_key STRING" in text and "format 'json'" in text
    # Partition 1 is ahead of partition 0: that makes no row of 0 late.
    assert "TIMESTAMP BY `at` DISORDER INTERVAL 7 SECONDS" in text
    said = "\n".join(findings_text(proposal))
    assert "t/0: 4 rows, 25.0 % out of order, the worst by 7 s" in said
    assert "t/1: 4 rows, in order, up to 2026-01-01 00:00:23" in said and "t/2: 0 rows [measured]" in said


def test_a_lull_is_no_shorter_than_the_disorder() -> None:
    assert "LULL INTERVAL 50 SECONDS" in script(found([event(second) for second in (1, 55, 5, 56)]))


def test_values_on_several_lines_and_of_several_kinds() -> None:
    values = [json.dumps({"v": n if n else "x", "kafka_own": 1, "": 2}, indent=1) for n in range(20)]
    proposal = found([*values, "torn {"])
    assert (proposal.rows.rows, proposal.rows.malformed) == (19, 2)
    text = script(proposal)
    assert "  v BIGINT" in text and "on_malformed 'skip'" in text and "'kafka_own', ''" in text


def test_rows_are_counted_by_partition_without_those_that_cannot_be_read() -> None:
    proposal = found({0: [event(1), "torn", *(event(second) for second in range(2, 40))], 1: [event(3), event(4)]})
    assert proposal.rows.parts == {"t/0": 39, "t/1": 2}
    assert proposal.time is not None and not any(own.worst for own in proposal.partitions.values() if own)


def test_times_that_are_missing_belong_to_their_partition() -> None:
    ordered = [json.dumps({"ts": f"2026-01-01T00:01:{second:02d}Z"}) for second in range(30)]
    proposal = found({0: [*ordered, '{"ts": "never"}'], 1: ordered})
    assert proposal.time is not None and (proposal.time.column, proposal.time.unfit) == ("ts", 1)
    rows = {name: own.rows for name, own in proposal.partitions.items() if own}
    assert rows == {"t/0": 30, "t/1": 30} and proposal.profile is not None and not proposal.profile.worst


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ([f"{n};a{n % 2};{n / 4}" for n in range(9)], ["column_2 STRING", "column_3 DOUBLE", "delimiter ';'"]),
        ([f"GET /{n}" for n in range(9)], ["value STRING", "format 'raw'"]),
        ([f"{n}" for n in range(9)], ["value STRING", "format 'raw'"]),
        ([bytes([n, 255]) for n in range(9)], ["value BINARY", "format 'raw'"]),
        ([None] * 3, ["value STRING", "format 'raw'"]),
    ],
)
def test_values_that_are_no_json(values: Values, parts: list[str]) -> None:
    text = script(found(values))
    assert "TIMESTAMP BY kafka_timestamp ORDERED" in text
    for part in parts:
        assert part in text, text


def test_the_number_of_a_schema_is_told() -> None:
    said = "\n".join(findings_text(found([b"\0\0\0\0\7" + bytes([n, 255]) for n in range(9)])))
    assert "they begin with the number of a schema, 7" in said


def test_a_time_inside_a_struct_goes_before_that_of_kafka_and_takes_no_name_of_a_column() -> None:
    text = script(found([json.dumps({"e": {"ms": 1_700_000_000_000 + n}, "e_ms": "a"}) for n in range(9)]))
    assert "e_ms_ TIMESTAMP AS timestamp_millis(e.ms)" in text and "TIMESTAMP BY e_ms_ ORDERED" in text
    assert "or kafka_timestamp" not in text and "timestamp_format" not in text and "kafka_timestamp (iso)" in text


def test_a_part_of_the_messages_is_called_so() -> None:
    assert "the oldest and newest 9 rows" in script(found([event(second) for second in range(9)], whole=False))
    assert "kafka_key BINARY" in script(found([event(1), event(2)], key=b"\xff"))
