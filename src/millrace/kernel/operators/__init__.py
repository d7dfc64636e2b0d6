"""One operator a file; each is written once and runs on every host."""

from millrace.kernel.operators.filter import Filter
from millrace.kernel.operators.merge import Merge
from millrace.kernel.operators.operator import Operator
from millrace.kernel.operators.pre_aggregate import PreAggregate
from millrace.kernel.operators.project import Project
from millrace.kernel.operators.since import Since
from millrace.kernel.operators.union import Union
from millrace.kernel.operators.window_aggregate import WindowAggregate

__all__ = ["Filter", "Merge", "Operator", "PreAggregate", "Project", "Since", "Union", "WindowAggregate"]
