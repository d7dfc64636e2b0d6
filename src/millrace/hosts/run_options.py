"""How a run is carried out: one record of options, checked when it is made, which every host takes whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from millrace.errors import RequestError, did_you_mean, listed
from millrace.hosts.report import Ending

HostName = Literal["spark", "local", "virtual"]
HOSTS: tuple[HostName, ...] = ("spark", "local", "virtual")
_OF_SPARK = {
    "master": "--master",
    "trigger": "--trigger",
    "settings": "--set",
    "profile": "--profile",
    "verbose": "--verbose",
}
"""Options that no other host has, and what they are called on the command line."""


@dataclass(frozen=True)
class RunOptions:
    """The host of a run, when the run ends, and what else was asked of it.

    >>> RunOptions("local", "end").checkpoint is None
    True
    >>> RunOptions("local", profile=True)
    Traceback (most recent call last):
    millrace.errors.RequestError: "profile" works only on Spark
    hint: Run it --on spark, or leave out --profile.
    """

    on: HostName = "spark"
    ending: Ending = "stopped"
    checkpoint: Path | None = None
    """The folder that keeps the state of the run; a later run resumes from it."""
    control: Path | None = None
    """The folder through which other processes may change the network while it runs."""
    commit_interval: int | None = None
    """Microseconds between two commits on the local host (default: a second); with 0 after every turn."""
    cost: int | None = None
    """Microseconds of virtual time that an operator takes per row."""
    master: str = "local[*]"
    trigger: str = "500 milliseconds"
    """The interval between micro-batches on Spark, in Spark's words."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the Spark session."""
    stages: int | None = None
    """The least number of stateful stages of a new checkpoint on Spark; more than its queries need leave room."""
    profile: bool = False
    """True if the report says where the time of micro-batches on Spark went."""
    verbose: bool = False
    """True if Spark logs more."""

    user_code: bool = True
    """True if SQL may name Python code to be imported, or a class of Spark's sources."""

    def __post_init__(self) -> None:
        """Refuse options that the host does not have."""
        if self.on not in HOSTS:
            hint = f"{did_you_mean(str(self.on), HOSTS)}The hosts are {listed(HOSTS)}."
            raise RequestError(f'there is no host "{self.on}"', hint=hint)
        if self.commit_interval is not None and self.on != "local":
            raise RequestError(
                f"{self.on} has no commit interval",
                hint="On Spark every micro-batch is committed: choose --trigger. A virtual run commits when it ends.",
            )
        if self.cost is not None and self.on != "virtual":
            raise RequestError('"cost" works only in virtual time', hint="Run it --on virtual, or leave out --cost.")
        if self.on != "spark":
            self._refuse_those_of_spark()
        if self.stages is not None and (self.stages < 1 or self.on != "spark"):
            raise RequestError(
                f"{self.stages} stages cannot be reserved on {self.on}",
                hint="Reserve one stage or more for a new checkpoint on Spark: --on spark --stages 2.",
            )
        if self.on == "virtual" and self.checkpoint is not None:
            raise RequestError(
                "the virtual host keeps no checkpoint",
                hint="Leave out --checkpoint: a virtual run is repeated exactly.",
            )
        if self.on == "virtual" and self.control is not None:
            raise RequestError(
                "a virtual run takes no requests from other processes",
                hint="Leave out --control, or run it --on local.",
            )

    def _refuse_those_of_spark(self) -> None:
        for each in fields(self):
            unsaid = {} if each.name == "settings" else each.default
            if each.name in _OF_SPARK and getattr(self, each.name) != unsaid:
                flag = _OF_SPARK[each.name]
                raise RequestError(
                    f'"{each.name}" works only on Spark', hint=f"Run it --on spark, or leave out {flag}."
                )
