"""One operator a file; each is written once and runs on every host."""

from millrace.kernel.operators.chronicle import Chronicle
from millrace.kernel.operators.distinct import Distinct
from millrace.kernel.operators.filter import Filter
from millrace.kernel.operators.join import Join
from millrace.kernel.operators.low_aggregate import LowAggregate
from millrace.kernel.operators.marked_aggregate import MarkedAggregate
from millrace.kernel.operators.merge import Merge
from millrace.kernel.operators.number import Number
from millrace.kernel.operators.operator import Operator
from millrace.kernel.operators.ordered_join import OrderedJoin
from millrace.kernel.operators.pair_aggregate import PairAggregate
from millrace.kernel.operators.partitioned_rows import PartitionedRowsAggregate
from millrace.kernel.operators.pre_aggregate import PreAggregate
from millrace.kernel.operators.project import Project
from millrace.kernel.operators.rank import Rank
from millrace.kernel.operators.recent import Recent
from millrace.kernel.operators.roll_up import RollUp
from millrace.kernel.operators.rows_join import RowsJoin
from millrace.kernel.operators.session_aggregate import SessionAggregate
from millrace.kernel.operators.since import Since
from millrace.kernel.operators.slack import Slack
from millrace.kernel.operators.trailing_aggregate import TrailingAggregate
from millrace.kernel.operators.union import Union
from millrace.kernel.operators.update_join import UpdateJoin
from millrace.kernel.operators.update_queue import UpdateQueue
from millrace.kernel.operators.window_aggregate import WindowAggregate
from millrace.kernel.operators.window_queue import WindowQueue

__all__ = [
    "Chronicle",
    "Distinct",
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
    "Recent",
    "RollUp",
    "RowsJoin",
    "SessionAggregate",
    "Since",
    "Slack",
    "TrailingAggregate",
    "Union",
    "UpdateJoin",
    "UpdateQueue",
    "WindowAggregate",
    "WindowQueue",
]
