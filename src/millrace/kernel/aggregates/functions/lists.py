"""List columns as partials: all values of a group, or the distinct ones.

Columns of lists stand beside each other where a row has several values: the lists of a row are equally long.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.aggregates.functions.function import Columns
from millrace.kernel.columns.grouping import Groups


def listed(groups: Groups, columns: Columns) -> list[pa.Array]:
    """The values of each group as a list, in the order of the rows."""
    order = pa.array(groups.order)
    offsets = pa.array(np.concatenate([[0], np.cumsum(groups.counts)]), pa.int32())
    return [pa.ListArray.from_arrays(offsets, column.take(order)) for column in columns]


def unlisted(groups: Groups, columns: Columns) -> tuple[Groups, list[pa.Array]]:
    """The values of lists, each in the group of its list."""
    parents = pc.list_parent_indices(columns[0]).to_numpy()
    return groups.of(parents), [column.flatten() for column in columns]


def elements(columns: Columns) -> tuple[Groups, list[pa.Array]]:
    """The values of lists, each list a group of its own."""
    count = len(columns[0])
    return unlisted(Groups(np.arange(count), count), columns)


def concatenated(groups: Groups, columns: Columns) -> list[pa.Array]:
    """The lists of each group as one."""
    return listed(*unlisted(groups, columns))
