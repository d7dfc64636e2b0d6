"""Which kind of queue the settings ask for, and its parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.baselines.linecutting_as_printed import LinecuttingAsPrinted
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.updates.policies.by_access import ByAccess
from millrace.kernel.updates.policies.key_cells import Cells, Numbers
from millrace.kernel.updates.policies.key_order import InPlace, KeyOrder, UpdateFifo
from millrace.kernel.updates.policies.linecutting import Linecutting
from millrace.kernel.updates.policies.locations import Locations
from millrace.kernel.updates.queue_settings import Access, QueueSettings

ROWS = "rows"
"""The kind that holds every row, in the order of arrival."""
_ORDERS = {
    "inplace": InPlace,
    "update_fifo": UpdateFifo,
    "linecutting": Linecutting,
    "linecutting_as_printed": LinecuttingAsPrinted,
}


def kind_of(settings: QueueSettings, appends: bool) -> str:
    """The kind of queue, which for the policy `auto` is a matter of whether it appends at present."""
    if settings.lossless or (settings.policy == "auto" and appends):
        return ROWS
    if settings.access:
        return "access"
    return "inplace" if settings.policy == "auto" else settings.policy


def key_order(kind: str, cells: Cells, settings: QueueSettings, table: KeyTable) -> KeyOrder:
    """The order of keys of an update queue."""
    if kind == "access":
        every = [each.every for each in settings.access]
        return ByAccess(cells, every, lambda keys: access_classes(table, settings.access, keys))
    return _ORDERS[kind](cells)


def locations(settings: QueueSettings, cells: Cells, slots: Cells) -> Locations:
    """The memory manager of an update queue."""
    return Locations(cells, slots, settings.page, naive=settings.memory == "naive")


def access_classes(table: KeyTable, access: tuple[Access, ...], keys: Numbers) -> Numbers:
    """The access class of each key: 0 for none, then by the first condition that holds."""
    found = np.zeros(len(keys), np.int64)
    rows = table.keys(keys) if table.names else pa.table({"": pa.nulls(len(keys))})
    batch = rows.combine_chunks().to_batches()[0]
    for number, each in reversed(list(enumerate(access, start=1))):
        holds = np.ones(len(keys), np.bool_)
        if each.when is not None:
            holds = each.when.over(batch).fill_null(False).to_numpy(zero_copy_only=False)
        found[holds] = number
    return found
