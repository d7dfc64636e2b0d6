"""The low and the high level of the Spark host in one process: buckets, micro-batches, replays, other workers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.commit_log.progress_files import ProgressFiles
from millrace.hosts.spark.exchange.buckets import bucket_ids
from millrace.hosts.spark.exchange.rows import CONTROL_PORT, REPORT_OUTPUT, Row, unpack
from millrace.hosts.spark.sink.reports import merge
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.stream_files import FileScan
from millrace.hosts.spark.stage import stage as stages
from millrace.hosts.spark.stage.segment_files import SegmentFiles
from millrace.hosts.spark.stage.shipped_stage import ShippedStage
from millrace.kernel.columns.expressions import Column
from millrace.kernel.progress.time_contract import TimeContract
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Project, Scan
from millrace.plan.physical.stages import physical
from tests.property.cases import SECOND, Case, batch, cases, declared, schedules
from tests.property.cases import Row as Given
from tests.property.test_admission import SCHEMA as ADMISSION_SCHEMA
from tests.property.test_admission import contracts, pieces
from tests.property.test_admission import rows as admission_rows
from tests.property.test_answers import check_order
from tests.property.test_outlets import PER_GROUP, TWO_ATTRIBUTES, lasting, over_groups, promising, reading
from tests.property.test_progress import delayed, sorted_out, unruly
from tests.property.test_windows import check
from tests.property.user_aggregates import DECLARED
from tests.property.windows import KINDS, window_cases
from tests.reference import admitted, evaluate, multiset

pytestmark = pytest.mark.slow

NOW = 1_700_000_000_000_000


class Store:
    """A bucket's map state, as a dictionary."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], tuple[bytes]] = {}

    def getMapState(self, name: str, key: str, value: str) -> Store:
        return self

    def getValue(self, key: tuple[str, int]) -> tuple[bytes] | None:
        return self.entries.get(key)

    def updateValue(self, key: tuple[str, int], value: tuple[bytes]) -> None:
        self.entries[key] = value

    def removeKey(self, key: tuple[str, int]) -> None:
        del self.entries[key]


class Levels:
    """Micro-batches of a network over a few buckets, as Spark would run them."""

    def __init__(self, network: QueryNetwork, buckets: int, folder: Path, *, live: bool = False) -> None:
        self.plan = physical(network)
        self.folder = folder
        PlanLog(folder / "plans").write(1, Version(network))
        self.live = live
        self.now = NOW
        self.buckets = tuple(bucket_ids(buckets))
        self.depth = self.plan.depth
        self.stores = {(level, bucket): Store() for level in range(1, self.depth + 1) for bucket in self.buckets}
        self.known: dict[str, Any] | None = None
        self.results: list[dict[str, Any]] = []
        self.read = {stream.name: 0 for stream in network.streams()}
        self.segments: Path | None = None
        """Where processes of one machine share segments, if they do."""

    def micro_batch(
        self, files: dict[str, list[Path]], *, end: bool = False, woken: bool = False, replayed: bool = False
    ) -> None:
        rows = [row for stream, paths in files.items() for row in self._low(stream, paths)]
        if end or woken:
            note = json.dumps(
                {
                    "now": self.now,
                    "end": end,
                    "wants": (self.known or {}).get("wants", {}),
                    "plan": 1,
                    "live": self.live,
                    "committed": 0,
                }
            )
            rows += [Row(bucket, CONTROL_PORT, 0, b"", note) for bucket in self.buckets]
        for level in range(1, self.depth):
            rows = [Row(*given) for given in self._high(level, rows, replayed=replayed)]
        reports = []
        for output, blob, note in self._high(self.depth, rows, replayed=replayed):
            if output == REPORT_OUTPUT:
                reports.append(json.loads(note))
            else:
                self.results += unpack(blob).to_pylist()
        self.known = merge(self.known, reports)
        self.known["sources"] = ProgressFiles(self.folder / "commits").save_changed(self.known["sources"])

    def _low(self, stream: str, paths: list[Path]) -> Iterator[Row]:
        low = StreamLowLevel(self.plan, stream, self.buckets, self.live, folder=str(self.folder))
        known = (self.known or {}).get("sources", {}).get(stream, {})
        tasks = [paths] if low.in_sequence and paths else [[path] for path in paths]
        look = FileScan(self.now, self.now, self.now, all=True)
        for together in tasks:
            names, alone = [str(path) for path in together], len(tasks) == 1
            for exchanged in low.read(names, self.read[stream], look, known, alone=alone):
                yield from (Row(*each.values()) for each in exchanged.to_pylist())
            self.read[stream] += len(together)
        # Streams are asked for their files one after another.
        self.now += 1

    def _high(self, level: int, rows: list[Row], *, replayed: bool) -> list[tuple[Any, ...]]:
        """What all buckets of a level give; with `replayed`, what they give when they are asked once more."""
        given: list[tuple[Any, ...]] = []
        for bucket in self.buckets:
            store, mine = self.stores[level, bucket], [row for row in rows if row.bucket == bucket]
            before = dict(store.entries)
            if mine and replayed:
                self._staged(level, bucket, mine)
                store.entries = before
            given += self._staged(level, bucket, mine) if mine else []
        return given

    def _staged(self, level: int, bucket: int, rows: list[Row]) -> list[tuple[Any, ...]]:
        stage = ShippedStage(str(self.folder), self.buckets, level=level, last=level == self.depth)
        stage.init(self.stores[level, bucket])  # type: ignore[arg-type]
        stage._files = SegmentFiles(str(self.folder), self.segments)
        frames = stage.handleInputRows((bucket,), iter([pd.DataFrame(rows, columns=list(Row._fields))]), None)
        return [each for frame in frames for each in frame.itertuples(index=False, name=None)]


def run(data: st.DataObject, case: Case, folder: Path) -> Levels:
    """A run of the case's rows as files, some files together, some micro-batches replayed, some by a new worker."""
    stages._CACHED.clear()
    levels = Levels(on_files(case.network, folder), data.draw(st.integers(1, 3), label="buckets"), Path(folder))
    levels.segments = folder / "segments" if data.draw(st.booleans()) else None
    waiting: dict[str, list[Path]] = {}
    for number, (stream, rows) in enumerate(data.draw(schedules(case.rows))):
        path = folder / stream / f"{number:04d}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_batches([batch(rows)]), path)
        waiting.setdefault(stream, []).append(path)
        if data.draw(st.booleans()):
            levels.micro_batch(waiting, replayed=data.draw(st.booleans()))
            waiting = {}
        if data.draw(st.booleans()):
            stages._CACHED.clear()
    levels.micro_batch(waiting)
    levels.micro_batch({}, end=True, replayed=data.draw(st.booleans()))
    return levels


def on_files(network: QueryNetwork, folder: Path) -> QueryNetwork:
    return network.with_streams(
        {
            stream.name: replace(stream, connector=Connector("parquet", {"path": str(folder / stream.name)}))
            for stream in network.streams()
        }
    )


@given(data=st.data(), case=cases())
def test_two_levels_give_the_answer_across_buckets_and_replays(data: st.DataObject, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        levels = run(data, case, Path(folder))
    assert multiset(levels.results) == case.expected()
    check_order(case, levels.results)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_every_kind_of_window_is_the_same_across_levels_buckets_and_replays(kind: str, data: st.DataObject) -> None:
    case = data.draw(window_cases(kind))
    with tempfile.TemporaryDirectory() as folder:
        levels = run(data, case, Path(folder))
    check(case, levels.results)


@given(data=st.data(), given_rows=promising())
def test_promises_for_single_groups_lose_nothing_across_levels(data: st.DataObject, given_rows: list[Given]) -> None:
    case = Case(f"{DECLARED}{PER_GROUP}CREATE QUERY q AS {data.draw(over_groups())};", {"s0": given_rows})
    with tempfile.TemporaryDirectory() as folder:
        levels = run(data, case, Path(folder))
    check(case, levels.results)


@given(data=st.data(), given_rows=lasting())
def test_any_attribute_of_a_stream_can_be_read_across_levels(data: st.DataObject, given_rows: list[Given]) -> None:
    case = Case(f"{TWO_ATTRIBUTES}CREATE QUERY q AS {data.draw(reading())};", {"s0": given_rows})
    with tempfile.TemporaryDirectory() as folder:
        levels = run(data, case, Path(folder))
    check(case, levels.results)


@given(data=st.data(), case=unruly())
def test_two_levels_account_for_every_row(data: st.DataObject, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        levels = run(data, case, Path(folder))
    if not case.rows["s0"]:
        return
    assert levels.known is not None
    source = levels.known["sources"]["s0"]
    assert source["received"] == len(case.rows["s0"])
    assert source["quarantined"] == sum(row["ts"] is None for row in case.rows["s0"])
    # Files of one micro-batch are read side by side, so a row may be let in that a stricter reading calls late.
    on_time, late = sorted_out(case.rows["s0"])
    assert source["late"] <= len(late)
    if source["late"] == len(late):
        assert multiset(levels.results) == multiset(evaluate(case.network.queries[0], {"s0": on_time}))


@given(data=st.data(), contract=contracts(), given_rows=admission_rows())
def test_two_levels_account_for_every_row_by_every_contract(
    data: st.DataObject, contract: TimeContract, given_rows: list[Given]
) -> None:
    verdicts = [verdict for verdict, _ in admitted(contract, given_rows, ADMISSION_SCHEMA)]
    stages._CACHED.clear()
    with tempfile.TemporaryDirectory() as folder:
        stream = Stream("s", ADMISSION_SCHEMA, contract, Connector("parquet", {"path": folder}))
        query = Query("q", Project(Scan(stream), (("id", Column("id")),)), Sink("q", Connector("memory")))
        levels = Levels(QueryNetwork((query,)), data.draw(st.integers(1, 3), label="buckets"), Path(folder))
        alone = True
        for number, together in enumerate(data.draw(pieces(given_rows))):
            parts = data.draw(pieces(together))
            paths = [Path(folder) / f"{number:04d}-{part:04d}.parquet" for part in range(len(parts))]
            for path, rows in zip(paths, parts, strict=True):
                pq.write_table(pa.Table.from_pylist(rows, schema=ADMISSION_SCHEMA), path)
            alone = alone and len(parts) == 1
            levels.micro_batch({"s": paths}, replayed=data.draw(st.booleans()))
            if data.draw(st.booleans()):
                stages._CACHED.clear()
    assert levels.known is not None
    source = levels.known["sources"]["s"]
    assert source["received"] == len(given_rows)
    assert source["quarantined"] == verdicts.count("quarantined"), "never a matter of how files are read"
    assert source["late"] <= verdicts.count("late")
    assert len(levels.results) == source["received"] - source["quarantined"] - source["late"]
    if alone or contract.max_future_skew is not None:
        on_time = [row["id"] for row, verdict in zip(given_rows, verdicts, strict=True) if verdict == "admitted"]
        assert sorted(row["id"] for row in levels.results) == on_time


@given(data=st.data(), case=delayed())
def test_two_levels_lose_no_row_to_enabling_timestamps_within_the_skew(
    data: st.DataObject, case: tuple[QueryNetwork, list[tuple[int, str, Given]]]
) -> None:
    network, arrivals = case
    with tempfile.TemporaryDirectory() as folder:
        levels = live_run(data, network, arrivals, Path(folder))
    assert all(source["late"] == 0 for source in (levels.known or {}).get("sources", {}).values())
    given_rows = {name: [row for _, stream, row in arrivals if stream == name] for name in ("s0", "s1")}
    assert multiset(levels.results) == multiset(evaluate(network.queries[0], given_rows))


def live_run(
    data: st.DataObject, network: QueryNetwork, arrivals: list[tuple[int, str, Given]], folder: Path
) -> Levels:
    """Each row as a file that is read when it arrives, and wakings by the clock in between."""
    stages._CACHED.clear()
    levels = Levels(on_files(network, folder), data.draw(st.integers(1, 3), label="buckets"), folder, live=True)
    for number, (now, stream, row) in enumerate(arrivals):
        path = folder / stream / f"{number:04d}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_batches([batch([row])]), path)
        levels.now = now
        levels.micro_batch({stream: [path]})
        wake_at = (levels.known or {}).get("wake_at")
        coming = arrivals[number + 1][0] if number + 1 < len(arrivals) else now
        if wake_at is not None and wake_at <= coming and data.draw(st.booleans()):
            levels.now = max(now, wake_at)
            levels.micro_batch({}, woken=True, replayed=data.draw(st.booleans()))
    levels.micro_batch({}, end=True)
    return levels


def test_rows_of_a_stream_that_was_spoken_for_before_its_first_row_are_accounted_for(tmp_path: Path) -> None:
    promise = "ETS ON DEMAND LULL INTERVAL 5 SECONDS"
    window = "[RANGE 10 SECONDS SLIDE 10 SECONDS WA ts]"
    sql = declared("s0", 0, promise) + declared("s1", 0, promise)
    network = parse_network(f"{sql} CREATE QUERY q AS SELECT count(*) AS n FROM s0 UNION s1 {window};")
    stages._CACHED.clear()
    levels = Levels(on_files(network, tmp_path), 2, tmp_path, live=True)
    for stream, now, second in (("s0", 20, 1), ("s1", 22, 3)):
        path = tmp_path / f"{stream}.parquet"
        pq.write_table(pa.table({"ts": pa.array([second * SECOND]).cast(pa.timestamp("us", tz="UTC"))}), path)
        levels.now = now * SECOND
        levels.micro_batch({stream: [path]})
        levels.now += SECOND
        levels.micro_batch({}, woken=True)
    assert [row["n"] for row in levels.results] == [1]
    assert levels.known is not None
    source = levels.known["sources"]["s1"]
    assert (source["received"], source["late"], source["quarantined"]) == (1, 1, 0)


def test_rows_that_the_system_stamps_do_not_wait_for_those_of_the_same_micro_batch(tmp_path: Path) -> None:
    streams = "".join(
        f"CREATE STREAM {name} (v INT, ts TIMESTAMP) INTERNAL TIMESTAMP AS ts FROM parquet OPTIONS (path '{tmp_path}');"
        for name in ("s0", "s1")
    )
    network = parse_network(f"{streams} CREATE QUERY q AS SELECT v FROM s0 UNION s1 ORDER BY ts;")
    stages._CACHED.clear()
    levels = Levels(network, 2, tmp_path, live=True)
    paths = {}
    for number, name in enumerate(("s0", "s1")):
        paths[name] = [tmp_path / f"{name}.parquet"]
        pq.write_table(pa.table({"v": pa.array([number], pa.int32())}), paths[name][0])
    levels.micro_batch(paths)
    assert [row["v"] for row in levels.results] == [0, 1]
    assert levels.known is not None
    assert [source["enabled"] for source in levels.known["sources"].values()] == [0, 0]
