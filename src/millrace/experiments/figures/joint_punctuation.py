"""How long complete groups wait in a count by the two times of a join, by what the join promises (004 section 7).

The query is the paper's Q3: connections that one link asks for and another link confirms, by both times, which are
whole seconds. A group is complete when both links are past its times. A promise about pairs of times closes it at once.
A promise about one time closes it a window later, because a row of the other link may still be matched; unless the
condition that the answer comes after the question is part of the band, not a filter behind the join. If the first link
is late, that is not enough either: an answer may have a later question than the group's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Chart, Measured, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network

BANDS = (300.0, 150.0, 50.0, 1.0)
"""Seconds of the windows on both streams."""
ROWS = 5
"""Rows of each stream in a second."""
JOINT, INDIVIDUAL, FOLDED = "joint", "individual", "individual, folded"
LATE = 0.5
"""How late the first stream is where it is, in bands."""
JOINT_LATE, FOLDED_LATE = "joint, one late", "individual, folded, one late"
_SECOND = 1_000_000
_START = "1970-01-01 00:00:00"
_MARGIN = 5
"""Seconds before the end of the input that no group must leave in."""

_FILTER, _FOLDED = "NOT s0.ts >= s1.ts", "s0.ts < s1.ts"
"""The same condition in two ways; as a comparison of two times it becomes part of the band."""
_PAIR, _ONE = "s0.ts", "unix_micros(s0.ts) + 0 * s0.link"
"""The first time as it is, so that groups are pairs of times; and as a number that is no function of the time alone, so
that the second alone progresses."""
_FORMS = {
    JOINT: (_PAIR, _FILTER, 0.0),
    INDIVIDUAL: (_ONE, _FILTER, 0.0),
    FOLDED: (_ONE, _FOLDED, 0.0),
    JOINT_LATE: (_PAIR, _FILTER, LATE),
    FOLDED_LATE: (_ONE, _FOLDED, LATE),
}


@dataclass(frozen=True)
class PairCase:
    """A query over `seconds` of two streams, the first so `late`; results have the times of their group."""

    text: str
    seconds: float
    band: float
    late: float

    def measure(self) -> Measured:
        """How long groups wait; without the first ones, and those that the end of the input releases."""
        run = VirtualRun(parse_network(self.text))
        run.run()
        made = pa.concat_tables(each.rows for each in run.deliveries)
        left = np.repeat([each.now for each in run.deliveries], [each.rows.num_rows for each in run.deliveries])
        first, second = (made.column(name).cast(pa.int64()).to_numpy() for name in ("first", "second"))
        complete = np.maximum(first + round(self.late * _SECOND), second) + _SECOND
        since = complete / _SECOND
        reach = self.band + self.late
        counted = (since >= reach) & (since < self.seconds - reach - _MARGIN)
        waits = (left - complete)[counted]
        return {"results": made.num_rows, "wait": float(waits.mean()) / _SECOND, "answers": _digest(made)}


def pair_case(name: str, band: float) -> PairCase:
    """A form of the query at a band."""
    first, condition, late = _FORMS[name]
    seconds, late = 3 * band + 60, late * band
    query = f"""CREATE QUERY q3 AS SELECT {first} AS first, s1.ts AS second, count(*) AS n
  FROM s0 [WA ts, RANGE {band:.0f} SECONDS], s1 [WA ts, RANGE {band:.0f} SECONDS]
  WHERE s0.link = s1.link AND {condition} GROUP BY {first}, s1.ts;"""
    streams = _stream("s0", 1, seconds, band, late), _stream("s1", 2, seconds, band)
    return PairCase("\n".join([*streams, query]), seconds, band, late)


def _stream(name: str, seed: int, seconds: float, band: float, late: float = 0.0) -> str:
    """A stream that comes every second; of so many keys that a row has about one partner."""
    given = {"arrivals": "bursts", "rate": ROWS, "burst": ROWS, "keys": round(ROWS * band), "seconds": seconds}
    options = ", ".join(
        f"{key} '{value}'" for key, value in {**given, "seed": seed, "lag": late, "start": _START}.items()
    )
    time = "TIMESTAMP BY ts ORDERED ETS NONE"
    return f"CREATE STREAM {name} (link BIGINT, ts TIMESTAMP) {time} FROM generate OPTIONS ({options});"


def _digest(rows: pa.Table) -> int:
    """A digest of results in any order, their times as numbers."""
    columns = [column.cast(pa.int64()).combine_chunks() for column in rows.columns]
    ordered = pa.table(columns, names=rows.column_names).sort_by([("first", "ascending"), ("second", "ascending")])
    return int(hashlib.sha256(repr(ordered.to_pydict()).encode()).hexdigest()[:12], 16)


@figure(
    cases=lambda: {(name, band): pair_case(name, band) for band in BANDS for name in _FORMS},
    columns={"band_seconds": PLACE, "results": "results", "wait": "wait"},
    panels=[Chart("seconds of the band", "mean wait of a complete group, seconds", "wait", log="")],
)
def joint_punctuation(found: Results) -> list[Claim]:
    """004 section 7: how long complete pairs of times wait."""
    joint, individual, folded, joint_late, folded_late = (found.along(name, "wait") for name in _FORMS)
    answers = max(len({found[name, band]["answers"] for name in _FORMS}) for band in BANDS)
    earlier = furthest((individual[band] - joint[band] or 1e-9) / band for band in BANDS)
    most = max(BANDS)
    return [
        Claim("all forms have the same answers; the most different ones at a band", answers, 1, 1),
        Claim("joint: a group leaves when it is complete; the longest mean", max(joint.values()), 0, 0.01, "s"),
        about("joint: groups leave earlier by about the band; over the band", earlier, 1.0, 0.1),
        Claim("folded, individual is already tight; the longest mean", max(folded.values()), 0, 0.01, "s"),
        Claim("joint: even if one is late; the longest mean", max(joint_late.values()), 0, 0.01, "s"),
        # The times of a group are up to a band apart, all distances alike; it waits for that, and half a band at most.
        about("folded, if one is late: 3/8 of the band; over the band", folded_late[most] / most, 3 / 8, 0.1),
    ]
