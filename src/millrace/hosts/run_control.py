"""What every run has besides its work: requests, changes, its stop, and the locks that keep other runs out."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

from millrace.hosts.checkpoint.durable_files import lock_checkpoint, make_checkpoint_folder
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.control.request_folder import RequestFolder
from millrace.hosts.host_run import HostRun
from millrace.plan.nodes.query_network import QueryNetwork

_EVERY = 0.02
"""Seconds between two looks at the folder of requests."""


class RunControl:
    """Requests to a run, by threads of this process (`changes`) and through the folder `requests`, and its stop.

    It is made first of all: a second run on the same folders must not touch anything.
    """

    def __init__(
        self,
        network: QueryNetwork,
        changes: LiveChanges | None = None,
        requests: Path | None = None,
        checkpoint: Path | None = None,
    ) -> None:
        self.changes = changes or LiveChanges(network)
        self.stopping = Event()
        self.next_look = time.monotonic()
        """When the folder of requests is looked at again."""
        if checkpoint is not None:
            # Before the folder of requests, which may be in it: a new checkpoint is for its owner alone.
            make_checkpoint_folder(checkpoint)
        self.requests = RequestFolder(requests) if requests is not None else None
        try:
            self._lock = lock_checkpoint(checkpoint) if checkpoint is not None else None
        except BaseException:
            self._lock = None
            self.close()
            raise

    def serve(self, run: HostRun) -> None:
        """Carry out what has been asked; called by the run between two turns."""
        self.changes.woken.clear()
        self.changes.serve(run)
        if self.requests is not None and time.monotonic() >= self.next_look:
            self.requests.serve(lambda text: self.changes.carry_out(text, run))
            self.changes.check()
            self.next_look = time.monotonic() + _EVERY

    def stop(self) -> None:
        """Let the run end after its present turn."""
        self.stopping.set()
        self.changes.woken.set()

    def close(self) -> None:
        """Refuse further requests, and let other runs use the folders."""
        self.changes.close()
        if self.requests is not None:
            self.requests.close()
        if self._lock is not None:
            self._lock.close()
