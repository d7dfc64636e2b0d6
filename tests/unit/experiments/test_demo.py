"""The demonstration: its input, its yardstick, its table and its verdict; then, on Spark, a short performance."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.experiments.demo import demo, virtual_demo
from millrace.experiments.demo.links import SECOND, Feed, Feeder, link_files, true_counts, write_rows
from millrace.experiments.demo.side_by_side import SideBySide, q1
from millrace.experiments.demo.sink_watcher import FileSinkWatcher, committed_batches
from millrace.experiments.demo.timeline import SeenWindow, SystemOutput, Timeline
from millrace.experiments.demo.virtual_time import virtual_timeline
from tests.e2e.commands import wait_for


def offsets_of(feed: Feed, link: str) -> np.ndarray:
    return np.concatenate([file.offsets for file in link_files(feed) if file.link.name == link])


def timeline(ours: dict[int, SeenWindow], theirs: dict[int, SeenWindow]) -> Timeline:
    sides = SystemOutput("Millrace"), SystemOutput("stock Spark")
    for side, said in zip(sides, (ours, theirs), strict=True):
        for window, delivery in said.items():
            side.add(window, delivery)
    return Timeline(5, {0: 10, 1: 20, 2: 30}, (4.0, 12.0), *sides)


WELL = {0: SeenWindow(10, 7.0), 1: SeenWindow(20, 12.5), 2: SeenWindow(30, 18.0)}


class TestTheInput:
    def test_the_control_link_is_silent_for_half_a_minute_and_speaks_before_and_after(self) -> None:
        feed = Feed()
        begin, end = feed.silence
        control = offsets_of(feed, "control") / SECOND
        assert end - begin >= 30
        assert not ((control >= begin) & (control < end)).any()
        assert (control < begin).any() and (control >= end).any()

    def test_the_busy_links_send_in_every_window_and_in_order(self) -> None:
        feed = Feed()
        for link in ("main1", "main2"):
            times = offsets_of(feed, link)
            assert (np.diff(times) >= 0).all()
            assert set(times // (feed.window * SECOND)) == set(range(feed.windows))

    def test_a_file_is_due_after_its_rows_by_the_lag_of_its_link(self) -> None:
        for file in link_files(Feed(10)):
            age = file.due - file.offsets / SECOND
            assert (age >= file.link.lag).all() and (age <= file.link.lag + file.link.span + 1e-6).all()

    def test_files_come_in_the_order_they_are_due(self) -> None:
        due = [file.due for file in link_files(Feed(10))]
        assert due == sorted(due)

    def test_the_same_seed_gives_the_same_files(self) -> None:
        one, other = link_files(Feed(10)), link_files(Feed(10))
        assert [file.offsets.tolist() for file in one] == [file.offsets.tolist() for file in other]

    def test_true_counts_add_up_to_all_rows(self) -> None:
        files = link_files(Feed(10))
        counts = true_counts(files, 5)
        assert sorted(counts) == [0, 1]
        assert sum(counts.values()) == sum(len(file.offsets) for file in files)

    def test_written_rows_carry_their_times(self, tmp_path: Path) -> None:
        write_rows(tmp_path / "rows.parquet", np.array([1, 2_000_000]))
        table = pq.read_table(tmp_path / "rows.parquet")
        assert table.column("ts").cast(pa.int64()).to_pylist() == [1, 2_000_000]
        assert table.column_names == ["srcIP", "destIP", "len", "ts"]

    def test_the_query_is_understood(self, tmp_path: Path) -> None:
        network = q1(Feed(), tmp_path / "it's here")
        assert [stream.name for stream in network.streams()] == ["control", "main1", "main2"]
        assert all(stream.time.ets == "on_demand" for stream in network.streams())


class TestTheFeeder:
    @pytest.mark.slow
    def test_files_appear_when_they_are_due_and_none_is_left_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        feed = Feed(seconds=1, window=1)
        files = link_files(feed)
        feeder = Feeder(feed, files, tmp_path)
        monkeypatch.setattr("millrace.experiments.demo.links._AHEAD", -1.0)
        feeder.begin()
        wait_for(lambda: feeder.fed == sum(len(file.offsets) for file in files))
        assert feeder.elapsed() > max(file.due for file in files) - 0.1
        feeder.stop()
        rows = sum(pq.read_table(path).num_rows for link in feed.links for path in feeder.folder(link.name).iterdir())
        assert rows == feeder.fed

    def test_a_warm_up_row_is_as_old_as_its_link_makes_it(self, tmp_path: Path) -> None:
        feed = Feed()
        feeder = Feeder(feed, [], tmp_path)
        before = time.time()
        feeder.warm_up()
        after = time.time()
        for link in feed.links:
            (path,) = feeder.folder(link.name).iterdir()
            (moment,) = pq.read_table(path).column("ts").cast(pa.int64()).to_pylist()
            # To the microsecond, and what a float of today's seconds rounds away.
            assert before - 1e-5 <= moment / SECOND + link.lag + link.span <= after + 1e-5


class TestTheYardstick:
    def commit(self, output: Path, name: str, files: list[str]) -> None:
        log = output / "_spark_metadata"
        log.mkdir(exist_ok=True)
        lines = [json.dumps({"path": (output / file).as_uri(), "action": "add"}) for file in files]
        (log / name).write_text("\n".join(["v1", *lines]))

    def test_rows_are_seen_when_their_batch_is_committed_and_once(self, tmp_path: Path) -> None:
        seen: list[int] = []
        watcher = FileSinkWatcher(tmp_path, lambda rows: seen.extend(rows.column("n").to_pylist()))
        for number in range(3):
            pq.write_table(pa.table({"n": [number]}), tmp_path / f"part {number}.parquet")
        watcher.look()
        assert seen == []
        self.commit(tmp_path, "0", ["part 0.parquet"])
        watcher.look()
        assert seen == [0]
        self.commit(tmp_path, "1.compact", ["part 0.parquet", "part 1.parquet"])
        watcher.look()
        watcher.look()
        assert seen == [0, 1]

    def test_committed_batches_are_counted_without_hidden_files(self, tmp_path: Path) -> None:
        assert committed_batches(tmp_path) == 0
        (tmp_path / "commits").mkdir()
        for name in ("0", "1", ".1.crc", ".2.tmp"):
            (tmp_path / "commits" / name).touch()
        assert committed_batches(tmp_path) == 2


class TestTheTimeline:
    def test_a_delay_is_counted_from_the_end_of_the_window(self) -> None:
        made = timeline(WELL, {})
        assert made.delays(made.ours) == [2.0, 2.5, 3.0]
        assert made.delays(made.theirs) == []

    def test_a_window_that_never_came_is_missing_but_not_wrong(self) -> None:
        made = timeline(WELL, {0: SeenWindow(10, 7.0)})
        assert made.missing(made.theirs) == [1, 2] and made.wrong(made.theirs) == []

    def test_a_false_count_and_a_window_out_of_nothing_are_wrong(self) -> None:
        made = timeline({**WELL, 1: SeenWindow(21, 12.5), 9: SeenWindow(1, 50.0)}, {})
        assert made.wrong(made.ours) == [1, 9]

    def test_a_window_that_came_twice_is_wrong(self) -> None:
        made = timeline(WELL, {})
        made.ours.add(0, SeenWindow(10, 8.0))
        assert made.wrong(made.ours) == [0]

    def test_the_table_has_a_line_a_window_with_both_delays(self) -> None:
        lines = timeline(WELL, {0: SeenWindow(10, 7.1)}).table()
        assert len(lines) == 4
        assert lines[1].split() == ["0-5", "s", "10", "7.0", "s", "(+2.0", "s)", "7.1", "s", "(+2.1", "s)"]
        assert lines[2].split()[-1] == "never"

    def test_the_verdict_says_what_was_right_what_never_came_and_how_long_it_took(self) -> None:
        assert timeline(WELL, {0: SeenWindow(10, 25.0)}).verdict() == [
            "Millrace: 3 of 3 windows came out; every count is the true one",
            "stock Spark: 1 of 3 windows came out; every count is the true one",
            "stock Spark: never came out: 5-10 s, 10-15 s",
            "Millrace: delay after a window's end: median 2.5 s, worst 3.0 s",
            "stock Spark: delay after a window's end: median 20.0 s, worst 20.0 s",
        ]

    def test_the_picture_shows_every_window_of_both_sides(self) -> None:
        drawn = ElementTree.fromstring(timeline(WELL, {0: SeenWindow(10, 7.1)}).picture())
        words = {each.text for each in drawn.iter() if each.tag.endswith("text")}
        assert {"Millrace", "stock Spark", "stock Spark: 2 never came out", "control link silent"} <= words
        dots = [each for each in drawn.iter() if each.tag.endswith("use") and "fill-opacity: 0" in each.attrib["style"]]
        assert len(dots) == 2 + 1, "a hollow dot per window that never came out, and one in the legend"


@pytest.mark.parametrize("drawn", [True, False])
def test_the_demonstration_says_where_its_picture_is_or_what_draws_it(
    drawn: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Mock(**{"return_value.run.return_value": timeline(WELL, {}), "return_value.remarks.return_value": []})
    monkeypatch.setattr("millrace.experiments.demo.SideBySide", both)
    monkeypatch.setattr("millrace.experiments.demo.can_draw", lambda: drawn)
    out = io.StringIO()
    assert demo(tmp_path, out=out) == 0
    picture = tmp_path / "timeline.svg"
    assert picture.exists() is drawn and (tmp_path / "timeline.txt").exists()
    told = picture if drawn else 'none; install the extra "millrace[figures]" for pictures'
    assert out.getvalue().endswith(f"picture: {told}\n")


@pytest.mark.slow
def test_in_virtual_time_every_window_leaves_soon_and_without_ets_it_waits_for_the_silent_link(tmp_path: Path) -> None:
    out = io.StringIO()
    assert virtual_demo(tmp_path, out=out) == 0, out.getvalue()
    assert "in virtual time" in out.getvalue().splitlines()[1]
    feed, text = Feed(), (tmp_path / "timeline.txt").read_text()
    assert "Millrace: 9 of 9 windows came out; every count is the true one" in text
    assert "without ETS: never came out: 40-45 s" in text
    made = virtual_timeline(feed)
    assert max(made.delays(made.ours)) < 3 and max(made.delays(made.theirs)) > 20
    begin, end = feed.silence
    came = [row.at for number in made.truth if (row := made.theirs.first(number))]
    assert not [at for at in came if begin + 2 * feed.window < at < end]


def test_the_wait_for_two_sparks_says_what_each_of_them_does(tmp_path: Path) -> None:
    both = SideBySide.__new__(SideBySide)
    both.folder, both._batches, both._run = tmp_path, 0, None
    assert both._wait_text(0, 0, 0, 12.3) == "starting Spark: 12 s (Millrace starting, stock Spark starting)"
    (tmp_path / "stock" / "checkpoint" / "commits").mkdir(parents=True)
    both._run = Mock()
    assert both._wait_text(0, 0, 0, 95) == "starting Spark: 95 s (Millrace first rows, stock Spark first rows)"
    both._batches = 1
    assert both._wait_text(1, 0, 0, 3) == "warming up, 2 of 2: 3 s (Millrace ready, stock Spark first rows)"


@pytest.mark.spark
@pytest.mark.long
def test_the_demonstration_shows_true_counts_while_stock_spark_waits(tmp_path: Path) -> None:
    out = io.StringIO()
    assert demo(tmp_path, seconds=25, out=out) == 0, out.getvalue()
    text = (tmp_path / "timeline.txt").read_text()
    assert "Millrace: 5 of 5 windows came out; every count is the true one" in text
    assert "stock Spark: never came out: " in text
    ElementTree.parse(tmp_path / "timeline.svg")
