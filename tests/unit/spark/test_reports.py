from __future__ import annotations

from millrace.hosts.spark.reports import merge


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
