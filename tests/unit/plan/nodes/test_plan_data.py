from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from millrace.errors import MillraceError
from millrace.kernel.columns.expressions import Column, Literal
from millrace.language import parse_network
from millrace.plan.nodes.plan_data import data_of, value_of

GOLDEN = Path(__file__).parents[3] / "golden"


@pytest.mark.slow
def test_every_golden_network_is_the_same_after_json() -> None:
    tried = 0
    for path in sorted(GOLDEN.glob("*/query.sql")):
        try:
            network = parse_network(path.read_text())
        except MillraceError:
            continue
        again = value_of(json.loads(json.dumps(data_of(network))))
        assert again == network and repr(again) == repr(network), path.parent.name
        tried += 1
    assert tried > 30


def test_values_keep_their_types_and_what_is_shared_is_written_once() -> None:
    shared = Column("k")
    values = (
        [shared, shared],
        {"a": (1, 1.0, True, None), 2: b"\0\xff"},
        (float("inf"), -0.0, 2**70, "\ud800"),
        (datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 4), Decimal("1.20")),
        (pa.timestamp("us", tz="UTC"), pa.struct([("x", pa.list_(pa.int8()))]), pa.dictionary(pa.int32(), pa.string())),
        pa.schema([pa.field("a", pa.int64(), nullable=False)], metadata={"note": "kept"}),
        Literal(3, pa.duration("us")),
    )
    data = data_of(values)
    again = value_of(json.loads(json.dumps(data)))
    assert again == values and repr(again) == repr(values)
    assert again[5].metadata == values[5].metadata
    assert again[0][0] is again[0][1]
    assert sum(kind == "Column" for kind, _ in data["parts"]) == 1


def test_data_names_only_what_is_on_the_list() -> None:
    for kind in ("system", "os:system", "Path", "object"):
        with pytest.raises(KeyError):
            value_of({"parts": [[kind, ["true"]]], "whole": {"part": 0}})
