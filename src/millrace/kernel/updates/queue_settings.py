"""How a queue of updates works: its policy, its memory, its budget, and when its keys are read.

Rules:
- With `append` and `append_shed` every row passes that is kept, in the order of arrival; all others are update
  queues, which hold one row per key, the newest.
- `keep` is the share of rows that `append_shed` keeps; without it, as many as the work downstream can take.
- A key belongs to the first access class whose condition holds for it; one without a class is read all the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from millrace.errors import RequestError
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.elements import Microseconds

LINECUTTING_AS_PRINTED = "linecutting_as_printed"
POLICIES = ("append", "append_shed", "update_fifo", "inplace", "linecutting", LINECUTTING_AS_PRINTED, "auto")
LOSSLESS = ("append", "append_shed")
"""Policies without update semantics: older rows pass too."""
MEMORIES = ("released", "naive")
WITH_ACCESS = ("inplace", "auto")
"""Policies that can serve keys by when they are read."""


@dataclass(frozen=True)
class Access:
    """Keys for which `when` holds (None: all) are read every so often, at the multiples of `every` since the epoch."""

    every: Microseconds
    when: Expression | None = None

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise RequestError(
                "keys cannot be read every 0 seconds", hint="Write ACCESS EVERY with a length of time, or leave it out."
            )


@dataclass(frozen=True)
class QueueSettings:
    """The settings of a queue, which can change while it works.

    >>> QueueSettings().policy
    'inplace'
    >>> QueueSettings("append_shed", keep=0.5).lossless
    True
    """

    policy: str = "inplace"
    keep: float | None = None
    memory: str = "released"
    budget_rows: int | None = None
    budget_time: Microseconds | None = None
    access: tuple[Access, ...] = ()

    def __post_init__(self) -> None:
        _check_name("queue", self.policy, POLICIES)
        _check_name("memory", self.memory, MEMORIES)
        if self.keep is not None and not 0 < self.keep <= 1:
            raise RequestError(
                f"{self.keep} is not a share of rows to keep", hint="Write keep as a number above 0 and up to 1."
            )
        for budget in (self.budget_rows, self.budget_time):
            if budget is not None and budget < 1:
                raise RequestError(
                    "budget must be positive",
                    hint="Write budget = '1000 rows' or budget = '50 milliseconds'.",
                )
        if self.access and self.policy not in WITH_ACCESS:
            raise RequestError(
                f"queue = '{self.policy}' does not know when keys are read",
                hint="Leave ACCESS EVERY out, or read the stream with queue = 'inplace' or queue = 'auto'.",
            )

    @property
    def lossless(self) -> bool:
        """True if rows pass however old they are."""
        return self.policy in LOSSLESS


def _check_name(option: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise RequestError(f'no {option} is called "{name}"', hint=f"Write {option} = one of {', '.join(names)}.")
