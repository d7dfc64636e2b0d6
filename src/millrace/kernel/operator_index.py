"""Every operator by its name, for the plan that chooses among them; each stands in the room of its kind."""

from millrace.kernel.aggregates.low_level.low_aggregate import LowAggregate
from millrace.kernel.aggregates.low_level.pre_aggregate import PreAggregate
from millrace.kernel.aggregates.marked_aggregate import MarkedAggregate
from millrace.kernel.aggregates.pair_aggregate import PairAggregate
from millrace.kernel.aggregates.partitioned_rows_aggregate import PartitionedRowsAggregate
from millrace.kernel.aggregates.session_aggregate import SessionAggregate
from millrace.kernel.aggregates.trailing_aggregate import TrailingAggregate
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.joins.any_order.join import Join
from millrace.kernel.joins.by_rows.rows_join import RowsJoin
from millrace.kernel.joins.in_order.ordered_join import OrderedJoin
from millrace.kernel.joins.sequences.asof_join import AsofJoin
from millrace.kernel.joins.sequences.chronicle import Chronicle
from millrace.kernel.joins.tables.table_join import TableJoin
from millrace.kernel.operator import Operator
from millrace.kernel.progress.released import Released
from millrace.kernel.progress.roll_up import RollUp
from millrace.kernel.progress.slack import Slack
from millrace.kernel.progress.stamp import Stamp
from millrace.kernel.relational.distinct import Distinct
from millrace.kernel.relational.explode import Explode
from millrace.kernel.relational.filter import Filter
from millrace.kernel.relational.merge import Merge
from millrace.kernel.relational.number import Number
from millrace.kernel.relational.project import Project
from millrace.kernel.relational.rank import Rank
from millrace.kernel.relational.since import Since
from millrace.kernel.relational.union import Union
from millrace.kernel.updates.joins.timed_update_join import TimedUpdateJoin
from millrace.kernel.updates.joins.update_join import UpdateJoin
from millrace.kernel.updates.update_queue import UpdateQueue
from millrace.kernel.updates.windows.window_queue import WindowQueue

__all__ = [
    "AsofJoin",
    "Chronicle",
    "Distinct",
    "Explode",
    "Filter",
    "Join",
    "LowAggregate",
    "MarkedAggregate",
    "Merge",
    "Number",
    "Operator",
    "OrderedJoin",
    "PairAggregate",
    "PartitionedRowsAggregate",
    "PreAggregate",
    "Project",
    "Rank",
    "Released",
    "RollUp",
    "RowsJoin",
    "SessionAggregate",
    "Since",
    "Slack",
    "Stamp",
    "TableJoin",
    "TimedUpdateJoin",
    "TrailingAggregate",
    "Union",
    "UpdateJoin",
    "UpdateQueue",
    "WindowAggregate",
    "WindowQueue",
]
