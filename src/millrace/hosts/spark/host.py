"""The Spark host: one streaming query per network, durable and distributed.

A checkpoint folder holds Spark's own checkpoint, the commit log, the plans, results of queries without a file sink, and
a manifest: the queries, the number of buckets and that of the stateful stages (see checkpoint_manifest.py).

Rules:
- A change is made between two micro-batches: the source is held, the change recorded, its plan written, and the source
  released with it. In a run that ends by itself the streaming query is started again (see restartable_query.py).
- A run that is stopped ends after its present micro-batch, unless Spark itself reads streams.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import finalize

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millrace.connectors.native import is_native
from millrace.errors import RunError
from millrace.hosts.checkpoint.checkpoint import fingerprint
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_control import RunControl
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.checkpoint_manifest import CheckpointManifest, go_on, points
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.commit_reader import CommitReader
from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.commit_log.torn_files import remove_torn
from millrace.hosts.spark.failures import LostProcesses, unwrap
from millrace.hosts.spark.restartable_query import PATIENCE, RestartableQuery, make_active, reads_natively
from millrace.hosts.spark.session.session import join_session, leave_session, open_session, parallelism
from millrace.hosts.spark.session.shipped_code import ship
from millrace.hosts.spark.sink.deliveries import Deliveries
from millrace.hosts.spark.sink.destinations import Destinations
from millrace.hosts.spark.sink.relay import Relays
from millrace.hosts.spark.source.native_streams import check_native
from millrace.hosts.spark.source.python_streams import PythonStreams, has_read
from millrace.hosts.tables.run_tables import ReadTable, RunTables
from millrace.hosts.why.lag import Lag
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import Physical, physical

_POLL = 0.1


class SparkRun:
    """A network at work on Spark, in the session given, in that of this process, or in one of its own."""

    def __init__(
        self,
        network: QueryNetwork,
        options: RunOptions | None = None,
        *,
        feeds: Mapping[str, Any] | None = None,
        listeners: Listeners | None = None,
        changes: LiveChanges | None = None,
        session: SparkSession | None = None,
    ) -> None:
        self.options = options = options or RunOptions("spark")
        self.ending = options.ending
        self.folder = (options.checkpoint or Path(tempfile.mkdtemp(prefix="millrace-run-"))).resolve()
        # A start that is broken off leaves nothing behind.
        self._remove = None if options.checkpoint else finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.log_file = self.folder / "spark.log"
        self._python_streams = PythonStreams({} if feeds is None else feeds, self.folder / "feeds")
        self._listeners = listeners or Listeners()
        self._commits = CommitLog(self.folder / "commits")
        self._plans = PlanLog(self.folder / "plans")
        self._committed = CommitReader(self._commits, profiled=options.profile)
        self._owner = uuid4().hex
        self._deliveries = Deliveries(self.folder, self._owner)
        self._shares_session = False
        self._lost = LostProcesses()
        self._told_replays: set[str] = set()
        self._control = RunControl(network, changes, options.control, self.folder)
        self.changes = self._control.changes
        try:
            self._open(session)
        except BaseException:
            self._let_go()
            self.close()
            raise

    def _open(self, session: SparkSession | None) -> None:
        known, began = CheckpointManifest.read(self.folder), physical(self.changes.network)
        remove_torn(self.folder, (self._commits.newest() or {}).get("batch"))
        if known is not None:
            known.check_stages(self.options.stages, self.folder)
            go_on(self.folder, known, self.changes)
        self.session, self._shares_session = join_session(session, self._new_session)
        self._query = RestartableQuery(
            self.session, self.folder, self._owner, self.ending, self._python_streams, self._control.stopping
        )
        if known is not None:
            others = self.changes.evolution is not None or not self._tables_of_run().fit(self.changes.network)
            if others and self._query.is_pending():
                self._query.manifest = known
                self._query.finish()
            go_on(self.folder, known, self.changes)
            self._committed.go_on()
        plan = physical(self.changes.network)
        self._tables = self._tables_of_run()
        self._tables.open(plan.network, _now())
        self.changes.tables = self._tables.saved()
        ran = self.changes.ran or plan.network
        self.destinations = Destinations(self.folder, ran.queries, fresh=known is None)
        self._relays = Relays(self.session, self.folder, self.options.trigger, self.log_file)
        self._relays.take(ran.queries)
        if known is not None:
            self._deliveries.resume(self.destinations.reached(plan.network.queries, self.changes.renamed))
        self.memory, self.answers = self.destinations.sinks.memory, self.destinations.sinks.answers
        take_sinks = self.destinations.prepare(plan.network.queries, self.changes.renamed)
        network = self._python_streams.network(plan)
        self._check_spark(network)
        self._tell_replays(network)
        take_sinks()
        self._relays.take(plan.network.queries)
        self.destinations.sinks.clear()
        self.network = network
        if known is None:
            stages = max(self.options.stages or 1, plan.depth)
            known = CheckpointManifest(fingerprint(began), parallelism(self.session), stages, plan=0)
        self._manifest = known
        self._settle_plan()

    def _tables_of_run(self) -> RunTables:
        """The tables as the checkpoint has them."""
        warn, wake = self._listeners.warning, self.changes.woken.set
        return RunTables(self.folder, self._python_streams.feeds, self.changes.tables, warn, wake)

    def _new_session(self) -> SparkSession:
        options = self.options
        self._listeners.phase("starting Spark")
        natively = reads_natively(self.changes.network)
        return open_session(
            options.master,
            log_file=self.log_file,
            verbose=options.verbose,
            settings=options.settings,
            reads_rows=natively,
        )

    def _check_spark(self, network: QueryNetwork) -> None:
        """Refuse streams that Spark cannot read, and sinks that it cannot write to."""
        make_active(self.session)
        plan = physical(network)
        try:
            for stream in network.streams():
                if is_native(stream.connector):
                    check_native(self.session, stream, plan, self._python_streams.frame(stream.name))
            self._relays.check_queries(network.queries)
        except (PySparkException, Py4JError) as error:
            raise unwrap(error, self.log_file) from None

    def _tell_replays(self, network: QueryNetwork) -> None:
        """Say of each stream once that it is not replayed: a micro-batch takes what is there."""
        for stream in network.streams():
            if stream.replay is not None and stream.name not in self._told_replays:
                self._told_replays.add(stream.name)
                self._listeners.warning(
                    f'stream "{stream.name}" is not replayed by "{stream.replay.column}" on Spark, which reads all '
                    "rows that are there as fast as it can: run it on local or virtual for the pace of REPLAY BY"
                )

    def _settle_plan(self) -> None:
        """Record the network as it is now, and write its plan, under a new number if it is another one."""
        # Once the change is on record, the queries that have left are no longer known.
        self._relays.relay_last()
        # As it will be read again: without tuples.
        saved = json.loads(json.dumps(self.changes.saved()))
        other = self._manifest.plan == 0 or saved != self._manifest.changes
        self._manifest = replace(self._manifest, plan=self._manifest.plan + other, changes=saved)
        self._manifest.write(self.folder)
        self._commits.claim(self._owner)
        ship(self.session, physical(self.network))
        self._deliveries.use(self.destinations.writers())
        self._plans.write(self._manifest.plan, Version(self.network, self.destinations.specs, self.changes.tables))
        self._query.use(self.network, self._manifest)

    # The run

    def run(self) -> Report:
        """Work until the run ends in its way, or is stopped."""
        try:
            self._drive()
            self._look()
            self._deliveries.drain()
            self._relays.drain()
            return self.report()
        finally:
            self._relays.stop()
            self.answers.close()
            self._let_go()

    def stop(self) -> None:
        """Let the run end after its present micro-batch."""
        self._control.stop()

    def close(self) -> None:
        """End the Spark session, if a run opened it and no other one is at work in it."""
        if self._shares_session:
            self._shares_session = False
            with suppress(PySparkException, Py4JError, OSError):
                leave_session(self.session)

    def _let_go(self) -> None:
        self._deliveries.stop()
        self._control.close()
        if self._remove is not None:
            self._remove()

    def _drive(self) -> None:
        # A run that was killed while it held the source left the mark behind.
        self._commits.release()
        while self.ending == "end" and not self._python_streams.polls.closed() and not self._control.stopping.is_set():
            self._control.stopping.wait(_POLL)
        if self.ending == "end" and reads_natively(self.network):
            # The end would overtake what Spark itself reads.
            self._pass(ends=False)
        self._pass(ends=self.ending == "end")

    def _pass(self, *, ends: bool) -> None:
        """Run Spark's streaming query until it ends, again and again if a change asks for it."""
        query, self._query.ends = self._query, ends
        query.again = True
        while query.again and not self._control.stopping.is_set():
            query.again = False
            try:
                self._run_query()
            except (PySparkException, Py4JError, ConnectionError) as error:
                self._look()
                if not self._lost.may_go_on(error, int(self._committed.newest.get("batch", -1))):
                    raise unwrap(error, self.log_file) from None
                query.again = True

    def _run_query(self) -> None:
        make_active(self.session)
        live = self.ending == "stopped"
        self._relays.start(follow=live)
        self._query.run(self.options.trigger if live else None, self._turn)
        self._measure()

    def _turn(self) -> None:
        """What is done again and again while Spark's query is at work."""
        self.changes.woken.wait(_POLL)
        live = self.ending == "stopped"
        if live and self.options.trigger and self._query.set_back.noticed():
            # Spark waits for its next trigger by the clock of the machine.
            self._relays.restart()
            self._query.again = True
            return
        if live:
            self._python_streams.polls.look()
        self._look()
        self._serve()
        self._refresh_tables()
        self._relays.check()
        self._deliveries.check()
        self._measure()

    def _measure(self) -> None:
        assert self._query.query is not None
        with self.changes.lock.work():
            self._committed.measure(self._query.query)
            self._committed.time_newest(self._query.query, self._query.interval)

    # Tables

    def _refresh_tables(self) -> None:
        """Take tables that have been read again into use, between two micro-batches."""
        try:
            for fresh in self._tables.take(_now()):
                self._renew(fresh)
        finally:
            self._query.release()

    def refresh_table(self, table: str) -> None:
        """Read a table again, and let it be in force from here on; or raise."""
        self._renew(self._tables.read(table, _now()))

    def _renew(self, fresh: ReadTable) -> None:
        if self._tables.put(fresh, self.changes.network, self.points()):
            self.changes.tables = self._tables.saved()
            self.keep()
            self._tables.settled()

    # Changes (see live_changes.py)

    def _serve(self) -> None:
        """Carry out what has been asked, between two micro-batches."""
        try:
            self._control.serve(self)
        finally:
            self._query.release()

    def settle(self) -> None:
        """Nothing to do: `points` and `prepare` hold the source."""

    def points(self) -> StreamProgress:
        """How far each stream has come."""
        self._query.hold()
        return points(self.folder)

    def prepare(self, plan: Physical) -> Callable[[], None]:
        """Check what a changed plan reads and where it writes."""
        self._query.hold()
        self._manifest.check_depth(plan, self.folder)
        network, take_sinks = self._python_streams.network(plan), self.destinations.prepare(plan.network.queries)
        self._check_spark(network)
        self._tables.open(plan.network, _now())

        def take_into_use() -> None:
            # What queries that leave have answered so far is still delivered.
            self._look()
            take_sinks()
            self._relays.take(network.queries)
            self._query.again |= reads_natively(network) or self._relays.changed
            self.network = network
            self._tell_replays(network)
            self.changes.tables = self._tables.saved()

        return take_into_use

    def shape(self, plan: Physical) -> None:
        """Nothing to do: a bucket builds its graph again when its rows name the new plan."""

    def keep(self) -> None:
        """Record the change, and write its plan."""
        self._settle_plan()

    def lag(self) -> Lag:
        """What holds time back, as of the newest commit, or of now if nothing has come since it."""
        with self.changes.lock.look():
            if self._query.found_nothing:
                self._committed.found_nothing(_now())
            return self._committed.lag()

    # Answers that are pulled

    def refresh(self, query: str) -> None:
        """Poll the streams of a query, and wait until a micro-batch has read their rows."""
        # A change that was asked for before this may still hold the source.
        self._query.release()
        if self._query.again:
            raise RunError("a change is starting the streaming query again", hint="Ask again in a moment.")
        streams = self.changes.streams_of(query) if self.ending == "stopped" else ()
        files = self._python_streams.polls.ask(streams)
        while not has_read(self._committed.newest, files) and self._query.at_work:
            self._control.stopping.wait(PATIENCE)
            self._look()
        self._look()

    # What it says of itself

    def _look(self) -> None:
        """Deliver what has been committed since the last look."""
        with self.changes.lock.work():
            for _, record in self._committed.look():
                self.destinations.put_answers(record)
                for name, rows in self.destinations.take_shown(record):
                    self._listeners.results(name, rows)
                self._listeners.progress(self.report())
        self._python_streams.polls.remove(self._committed.settled())

    def report(self) -> Report:
        """The run as of its last committed micro-batch."""
        with self.changes.lock.look():
            return self._committed.report(self.network.queries)

    def staleness(self, query: str) -> pa.Table:
        """How stale the most stale keys of a query were as of the newest commit."""
        with self.changes.lock.look():
            return self._committed.staleness(query, self.network.queries)


def _now() -> int:
    return time.time_ns() // 1000
