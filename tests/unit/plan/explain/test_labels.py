from __future__ import annotations

import pytest

from millrace.language import parse_network
from millrace.plan.explain.labels import contract_text


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ("TIMESTAMP BY ts ORDERED", "external time ts, ordered, ETS none"),
        ("TIMESTAMP BY ts DISORDER 2 SECONDS", "external time ts, disorder 2 SECONDS, ETS none"),
        ("TIMESTAMP BY ts DISORDER 1 ROWS", "external time ts, disorder 1 ROW, ETS none"),
        (
            "TIMESTAMP BY ts PUNCTUATED BY v > 5 PARTITIONED BY (k, v)",
            "external time ts, punctuated by (v > 5) in each partition of k, v, ETS none",
        ),
        (
            "TIMESTAMP BY ts ORDERED ETS EVERY 10 ms SKEW 1 s LULL 1 minute MAX FUTURE SKEW 5 minutes",
            "external time ts, ordered, ETS every 10 MILLISECONDS skew 1 SECOND lull 1 MINUTE, at most 5 MINUTES ahead",
        ),
        ("INTERNAL TIMESTAMP AS ts", "internal time ts, ETS on demand"),
        ("LATENT TIMESTAMP", "latent time"),
        ("INTERNAL TIMESTAMP AS at ETS EVERY 1 s", "internal time at, ETS every 1 SECOND"),
    ],
)
def test_a_contract_is_said_in_words(clauses: str, words: str) -> None:
    sql = f"CREATE STREAM s (k STRING, v INT, ts TIMESTAMP) {clauses} FROM csv OPTIONS (path 's'); SELECT v FROM s"
    (stream,) = parse_network(sql).streams()
    assert contract_text(stream.time) == words
