"""Queues of updates in words, and what stands above them: by which policy, by which key, and why here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from millrace.kernel.joins.sides import Side
from millrace.kernel.updates.queue_settings import LINECUTTING_AS_PRINTED, LOSSLESS, Access, QueueSettings
from millrace.plan.explain.join_labels import band_text, names_of
from millrace.plan.explain.time_text import interval_text
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.relational_nodes import Filter, Project, Scan, below_maps
from millrace.plan.nodes.update_nodes import (
    AnyQueue,
    AnyUpdateJoin,
    OuterUpdateJoin,
    TimedUpdateJoin,
    UpdateQueue,
    WindowQueue,
)
from millrace.plan.updates.queue_configuration import options_at, settings_of

_POLICIES: Mapping[str, str] = {
    "append": "every row passes, in the order in which it came",
    "append_shed": "rows are dropped by chance",
    "update_fifo": "the newest row of each key; an update goes to the end of the line",
    "inplace": "the newest row of each key; an update keeps the place in line of the one it replaces",
    "linecutting": "the newest row of each key; in place, and slow keys cut the line while that keeps staleness low",
    LINECUTTING_AS_PRINTED: "baseline: in place, and keys slower than a round cut the line (002 5.3)",
    "auto": "every row passes while the work above keeps up, and the newest row of each key under load",
}
_WINDOWS: Mapping[str, str] = {
    "eager": "the newest window that has started",
    "lazy": "the newest window that is complete",
    "every": "every window, in order (baseline)",
    "random": "windows drawn by chance (baseline)",
}


def queue_label(queue: AnyQueue, options: Mapping[str, str]) -> str:
    """What a queue is: its key and its policy, and its memory if that is a baseline."""
    settings = settings_of(options_at(queue, options))
    kind = "window queue" if isinstance(queue, WindowQueue) else "update queue"
    kind = "append queue" if settings.policy in LOSSLESS else kind
    key = "" if queue.key is None else f" by {', '.join(queue.key)}" if queue.key else " of one key"
    memory = ", naive memory (baseline)" if settings.memory == "naive" else ""
    return f"{kind}{key}, {settings.policy}{memory}"


def queue_notes(queue: UpdateQueue | WindowQueue, options: Mapping[str, str]) -> Iterator[str]:
    """How a queue works and why it stands where it does, one line each."""
    settings = settings_of(options_at(queue, options))
    if isinstance(queue, WindowQueue):
        length = f"{interval_text(queue.range)} every {interval_text(queue.slide)}"
        own = f"a row of the key is less than {interval_text(queue.tick)} before its end, or after it"
        closed = "the bound passes its end" if queue.close == "bound" else own
        yield f"commits to {_WINDOWS[queue.update_window]}, of {length} for each key; complete when {closed}"
    else:
        kept = f", {settings.keep:g} of them are kept" if settings.policy == "append_shed" and settings.keep else ""
        yield f"{_POLICIES[settings.policy]}{kept}"
    yield _place(queue, settings)
    if queue.truth is not None:
        yield f"of two updates of one key and time that of input {queue.truth + 1} wins"
    if settings.budget_rows is not None:
        yield f"releases at most {settings.budget_rows} rows at a time"
    if settings.budget_time is not None:
        yield f"releases at a time what takes at most {interval_text(settings.budget_time)}"


def _place(queue: AnyQueue, settings: QueueSettings) -> str:
    """Why a queue stands where it does."""
    if settings.policy in LOSSLESS:
        return "in front of its stream: all above it is an ordinary query"
    if any(isinstance(below, UpdateQueue) for each in queue.inputs for below in walk(each)):
        return "above the union as a guard, because its inputs have queues of their own: no key goes back in time"
    if any(not isinstance(below, Scan | Filter | Project) for each in queue.inputs for below in walk(each)):
        return "all rows count below it, so that no result depends on the load; work above it is for what it releases"
    if len(queue.inputs) > 1:
        return "one queue for the union: it knows the newest of each key among all inputs"
    return "above filters, so rows that they drop never enter it; below all work, which is for rows that it releases"


def filter_notes(node: Filter, options: Mapping[str, str]) -> Iterator[str]:
    """Why a filter stands above a queue of updates, and what that costs."""
    queue = below_maps(node)
    if isinstance(queue, UpdateQueue) and settings_of(options_at(queue, options)).policy not in LOSSLESS:
        yield "above the queue, because it calls a user function: it sees only rows that the queue releases"
        yield "if it drops the newest row of a key, the key keeps its last answer, or has none"


def update_join_label(join: AnyUpdateJoin) -> str:
    """What matches: the latest rows of equal keys, and the band of their times."""
    names = names_of(join.inputs)
    equal = " and ".join(" = ".join(row) for row in zip(*join.keys, strict=True))
    words = f"join of the latest rows of {_and(names)}{f' on {equal}' if equal else ''}"
    sides = [Side((), ahead) for ahead in join.within]
    band = (band_text(names, sides) if len(sides) == 2 else "") or _one_sided(names, join.within)
    where = "" if join.residual is None else f", only where {join.residual}"
    timed = isinstance(join, TimedUpdateJoin) or (isinstance(join, OuterUpdateJoin) and join.timed)
    time = ", at each time of a row" if timed else ""
    time += f"; rows of {names[join.kept]} that match none with nulls" if isinstance(join, OuterUpdateJoin) else ""
    return words + (f", {band}" if band else "") + where + time


def _one_sided(names: list[str], within: Sequence[int | None]) -> str:
    ends = [(names[:place] + names[place + 1 :], names[place], ahead) for place, ahead in enumerate(within)]
    return ", ".join(
        f"{_and(late)} at most {interval_text(ahead)} after {early}" for late, early, ahead in ends if ahead
    )


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def access_text(access: tuple[Access, ...]) -> str:
    """How often answers are read."""
    return ", ".join(
        f"every {interval_text(each.every)}" + ("" if each.when is None else f" when {each.when}") for each in access
    )
