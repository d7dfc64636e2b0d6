from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from millrace.survey.time_profile import SECOND, interval_at_least, time_profile


@pytest.mark.parametrize("seed", range(20))
def test_the_profile_is_that_of_a_look_row_by_row(seed: int) -> None:
    drawn = random.Random(seed)
    times = [at * 100 - drawn.randrange(900) * drawn.randrange(2) for at in range(drawn.randrange(1, 300))]
    late, greatest = [], times[0]
    for each in times:
        greatest = max(greatest, each)
        late.append(greatest - each)
    found = time_profile(np.array(times))
    assert found.worst == max(late) and found.late_rows == sum(each > 0 for each in late)
    late_only = sorted(each for each in late if each)
    assert found.half == (late_only[math.ceil(len(late_only) / 2) - 1] if late_only else 0)
    assert found.most == sorted(late)[math.ceil(0.99 * len(late)) - 1]
    moments = sorted(set(times))
    assert found.longest_gap == max((b - a for a, b in itertools.pairwise(moments)), default=0)


@pytest.mark.parametrize("micros", [1, 999, 10_500, 214_000, SECOND, 59_999_999, 3_600 * SECOND, 86_400 * SECOND + 1])
def test_an_interval_is_never_shorter_than_what_was_measured(micros: int) -> None:
    _, count, unit = interval_at_least(micros).split()
    length = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": SECOND, "MINUTE": 60 * SECOND, "HOUR": 3_600 * SECOND}
    length["DAY"] = 24 * length["HOUR"]
    found = int(count) * length[unit.removesuffix("S")]
    assert micros <= found <= micros * 1.1 + 1
