from __future__ import annotations

from millrace.hosts.spark.sink.reports import merge
from millrace.hosts.spark.stage.bucket_modes import mode_reports, modes_of
from millrace.hosts.spark.stage.bucket_queues import counts_of, queue_metrics_of
from millrace.kernel.metrics import InputCounts, JoinMetrics


def test_sources_grow_metrics_add_up_and_the_first_waking_and_least_want_win() -> None:
    one = {"sources": {"a": {"files": 2, "greatest": 5}}, "metrics": {"late": 1}, "wants": {"p": 7}}
    other = {"sources": {"a": {"files": 2, "greatest": 8}}, "metrics": {"late": 2}, "wants": {"p": 5, "r": 9}}
    assert merge(None, [{**one, "wake_at": 70, "now": 9, "plan": 2}, {**other, "wake_at": 60, "now": 8}]) == {
        "sources": {"a": {"files": 2, "greatest": 8}},
        "metrics": {"late": 3},
        "wake_at": 60,
        "wants": {"p": 5, "r": 9},
        "now": 9,
        "plan": 2,
    }


def test_a_source_that_no_report_names_has_left_the_network() -> None:
    sources = {"a": {"files": 3}, "b": {"files": 1}}
    before = {"sources": sources, "metrics": {"late": 7}, "wake_at": 50, "wants": {"p": 1}, "now": 5, "plan": 1}
    merged = merge(before, [{"sources": {"b": {"files": 2}}, "wake_at": None, "now": 6, "plan": 2}])
    known = {"b": {"files": 2}}
    assert merged == {"sources": known, "metrics": {}, "wake_at": None, "wants": {}, "now": 6, "plan": 2}


def test_a_batch_without_reports_changes_nothing_but_its_metrics() -> None:
    before = {
        "sources": {"a": {"files": 3}},
        "metrics": {"late": 7},
        "wake_at": 50,
        "wants": {"p": 1},
        "now": 5,
        "plan": 3,
    }
    assert merge(before, []) == {**before, "metrics": {}}


def test_a_batch_in_which_no_bucket_was_told_anything_forgets_nothing() -> None:
    before = {"sources": {"a": {"files": 3}}, "wake_at": 50, "wants": {"p": 1}, "now": 5, "plan": 3}
    merged = merge(before, [{"metrics": {"took": {"write": 0.5}}}, {"metrics": {"took": {"commit": 1.0}}}])
    assert merged == {**before, "metrics": {"took": {"write": 0.5, "commit": 1.0}}}


def test_nested_values_are_merged_by_name_and_nulls_give_way() -> None:
    one = {"now": 1, "sources": {"a": {"links": {"x": 1, "y": 9}, "greatest": None, "kind": "old"}}}
    other = {"now": 1, "sources": {"a": {"links": {"x": 4, "z": 2}, "greatest": 3, "kind": "new"}}}
    assert merge(None, [one, other])["sources"] == {
        "a": {"links": {"x": 4, "y": 9, "z": 2}, "greatest": 3, "kind": "new"}
    }


def told(keys: int, waiting: int, application_now: float, policy: str = "inplace") -> dict[str, object]:
    """A bucket's queue that has let half of what entered go."""
    counts = {"entered": 2 * waiting, "let_go": waiting, "superseded": 0, "shed": 0, "waiting": waiting}
    means = {"queue_now": 0.0, "queue_mean": 0.0, "application_now": application_now, "application_mean": 0.0}
    others = {"allocated": 16, "used": waiting, "switches": 0, "oldest": keys, "cost": float(keys), "policy": policy}
    return {
        "query": "q",
        **counts,
        **means,
        **others,
        "keys": keys,
        "by_input": [counts],
        "streams": ["s"],
        "stale": [],
    }


def test_counts_of_queues_add_up_and_staleness_is_a_mean_over_keys() -> None:
    first = {"now": 1, "queues": {"q": told(1, 10, 100.0)}, "queued": 10}
    second = {"now": 1, "queues": {"q": told(3, 20, 200.0)}, "queued": 20}
    record = merge(None, [first, second])
    assert record["queued"] == 30
    metrics = queue_metrics_of(record["queues"]["q"])
    assert (metrics.keys, metrics.waiting, metrics.entered, metrics.allocated) == (4, 30, 60, 32)
    assert (metrics.application_now, metrics.oldest) == (175.0, 3)
    assert metrics.cost == (1 * 10 + 3 * 20) / 30
    assert counts_of("s", record["queues"]) == InputCounts(60, 30, 0, 0, 30)
    assert counts_of("t", record["queues"]) == InputCounts()
    assert merge(record, [])["queues"] == record["queues"], "a batch without reports changes nothing"


def test_of_several_queries_the_one_counts_that_has_processed_least() -> None:
    both = {"q": told(1, 10, 100.0), "r": {**told(1, 30, 100.0), "query": "r"}}
    assert counts_of("s", merge(None, [{"now": 1, "queues": both, "queued": 40}])["queues"]).waiting == 30


def test_joins_add_up_over_buckets_and_have_the_mode_of_most() -> None:
    first, second = JoinMetrics("sync_filter", 2, 3, 4), JoinMetrics("filter_order", 1, 0, 10)
    reports = [
        {"now": 1, "metrics": {"joins": mode_reports({"port#2": each}, {"port": "q"})}}
        for each in (first, second, second)
    ]
    told = merge(None, reports)["metrics"]["joins"]
    assert modes_of(JoinMetrics, told) == {"q#2": JoinMetrics("filter_order", 4, 3, 24)}


def test_a_queue_that_is_not_in_the_same_mode_in_all_buckets_says_so() -> None:
    modes = [
        {"now": 1, "queues": {"q": {**told(1, 10, 1.0, "auto"), "mode": mode}}, "queued": 1}
        for mode in ("append", "inplace")
    ]
    assert queue_metrics_of(merge(None, modes)["queues"]["q"]).mode == "mixed"
    assert queue_metrics_of(merge(None, modes[:1])["queues"]["q"]).mode == "append"
