"""A kill at each named point of a micro-batch, without Spark: every result appears, and appears once.

The points inside our source, stages and sink are those of `test_matrix.py`, which kills real runs; here what Spark does
between them is done by hand (`spark_by_hand.py`), so that each point costs a fraction of a second.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from millrace.hosts.sinks.writers import WriterSpec
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.failures import CarriedError
from millrace.hosts.spark.sink.deliveries import staged_folder
from millrace.language import parse_network
from tests.crash.kills import Kill
from tests.crash.network import SCRIPT, SINKS, add_minute, expected, project, results
from tests.crash.spark_by_hand import Disk, SparkByHand, forget, killing_here
from tests.crash.test_matrix import LOG, POINTS, READER, STAGE, WRITER
from tests.unit.hosts.kept_epochs import kept

FILES = 4
RECOVERY = {
    "in recovery, before the batch is read again": Kill(f"{READER}.partitions"),
    "in recovery, in a reader's task": Kill(f"{READER}.read", "inside"),
    "in recovery, before a bucket has its state": Kill(f"{STAGE}._open"),
    "in recovery, after a bucket has written its state": Kill(f"{STAGE}._save", "after"),
    "in recovery, between two renames": Kill(f"{WRITER}._publish", "after"),
    "in recovery, before the record": Kill(f"{LOG}.write"),
    "in recovery, after the record": Kill(f"{LOG}.write", "after"),
}
EPOCHS = "tests.unit.hosts.kept_epochs:KeptEpochs"
DELIVERIES = "millrace.hosts.spark.sink.deliveries:Deliveries"
HAND_OVER = {
    "before the writer has the rows": Kill(f"{EPOCHS}.write", call=2),
    "after the writer has the rows": Kill(f"{EPOCHS}.write", "after", call=2),
    "before the mark that it has them": Kill(f"{DELIVERIES}._put_mark", call=2),
    "before the staged files are gone": Kill(f"{DELIVERIES}._put_mark", "after", call=2),
    "after the staged files are gone": Kill(f"{DELIVERIES}._deliver", "after", call=2),
    "before the record": Kill(f"{LOG}.write", call=2),
    "after the record": Kill(f"{LOG}.write", "after", call=2),
}
INSIDE = {name: kill for name, kill in POINTS.items() if kill.who == "all" and not name.startswith("in recovery")}


class Site:
    """A project whose runs are killed and go on."""

    def __init__(self, folder: Path) -> None:
        project(folder, FILES)
        script = SCRIPT
        for name in ("in", "rates", *(f"out/{sink}" for sink in SINKS)):
            script = script.replace(f"'{name}'", f"'{folder / name}'")
        self.network = parse_network(script)
        queries = zip(self.network.queries, SINKS, strict=True)
        self.sinks = {query.name: {"format": "csv", "path": str(folder / "out" / sink)} for query, sink in queries}
        self.folder, self.disk = folder, Disk()

    def start(self) -> SparkByHand:
        """Another run on the same disk."""
        return SparkByHand(self.network, self.sinks, self.folder / "state", self.disk)

    def check_so_far(self) -> None:
        """Assert that nothing is there that should not be, and nothing twice."""
        for sink, rows in results(self.folder).items():
            assert not rows - expected(FILES)[sink], sink

    def check(self) -> None:
        """Assert that all is there once, and counted once."""
        assert results(self.folder) == expected(FILES)
        record = CommitLog(self.folder / "state" / "commits").newest() or {}
        counts = {sink: sum(rows.values()) for sink, rows in expected(FILES).items()}
        assert record["metrics"]["results"] == dict(zip(self.sinks, counts.values(), strict=True))
        assert [source["received"] for source in record["sources"].values()] == [2 * FILES, 2 * FILES]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    forget()
    return Site(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["die", "live on"])
@pytest.mark.parametrize("kill", INSIDE.values(), ids=INSIDE)
def test_a_run_that_was_killed_goes_on_and_every_row_is_there_once(kill: Kill, workers: str, site: Site) -> None:
    with killing_here(kill):
        site.start().run()
    site.check_so_far()
    if workers == "die":
        forget()
    site.start().run_to_the_end()
    site.check()


@pytest.mark.slow
@pytest.mark.parametrize("kill", RECOVERY.values(), ids=RECOVERY)
def test_a_run_that_is_killed_while_it_recovers_goes_on_too(kill: Kill, site: Site) -> None:
    with killing_here(POINTS["before the sink commits"]):
        site.start().run()
    forget()
    with killing_here(kill):
        site.start().run()
    site.check_so_far()
    forget()
    site.start().run_to_the_end()
    site.check()


def test_a_run_over_a_finished_checkpoint_adds_nothing(site: Site) -> None:
    site.start().run_to_the_end()
    site.check()
    forget()
    add_minute(site.folder, FILES)
    with pytest.raises(CarriedError):
        site.start().micro_batch()
    site.check()


@pytest.mark.slow
@pytest.mark.parametrize("kill", HAND_OVER.values(), ids=HAND_OVER)
def test_a_run_killed_on_the_way_to_a_writer_repeats_and_loses_nothing(kill: Kill, site: Site) -> None:
    (counted, *_), folder = site.network.queries, site.folder / "kept"
    options = (("folder", str(folder)), ("run", "7a"))
    spec = WriterSpec(counted.name, EPOCHS, options, counted.root.schema)
    staged = staged_folder(site.folder / "state", counted.name)
    site.sinks[counted.name] = {"format": "arrow", "path": str(staged), "writer": spec}
    with killing_here(kill):
        site.start().run()
    forget()
    site.start().run_to_the_end()
    rows = [(str(row["window_start"])[:16], row["k"], str(row["n"]), str(row["total"])) for row in kept(folder)]
    assert Counter(rows) == expected(FILES)["counts"]
    assert list(staged.iterdir()) == []
