from __future__ import annotations

import json
from pathlib import Path

import pytest

from millrace.errors import CheckpointError
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.checkpoint_manifest import CheckpointManifest
from millrace.hosts.spark.host import SparkRun
from millrace.plan.nodes.query_network import QueryNetwork


def test_what_was_written_is_read(tmp_path: Path) -> None:
    manifest = CheckpointManifest("fingerprint", buckets=4, levels=2, plan=3, changes={"text": None, "history": []})
    manifest.write(tmp_path)
    assert CheckpointManifest.read(tmp_path) == manifest


def test_a_run_refuses_a_checkpoint_of_another_layout_before_it_starts_spark(tmp_path: Path) -> None:
    record = {"network": "", "buckets": 2, "levels": 1, "plan": 1, "changes": {}, "layout": 4}
    (tmp_path / "network.json").write_text(json.dumps(record))
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "00000001.plan").write_bytes(b"of the other version")
    with pytest.raises(CheckpointError, match="was made by another version of Millrace"):
        SparkRun(QueryNetwork(()), RunOptions("spark", checkpoint=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["network.json", "plans"]
