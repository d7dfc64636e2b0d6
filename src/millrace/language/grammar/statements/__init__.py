"""What a script says, statement by statement, before any name in it is looked up.

    placed      names, lengths and options, each with its place
    declared    what CREATE declares: streams, sinks, aggregates and functions
    selects     queries: FROM, joins, windows, selects, UNION and ORDER BY
    requests    what is asked of a network: queries to add, alter and drop, what it shows

Frozen data; expressions stay sqlglot's trees here, and the binder turns them into the kernel's.
Import from this package.
"""

from millrace.language.grammar.statements.declared import (
    AggregateStatement,
    Assignment,
    Blocks,
    ColumnDefinition,
    ColumnsClause,
    ConnectorClause,
    EtsClause,
    FunctionStatement,
    PartitionsClause,
    ReplayClause,
    SinkStatement,
    StreamStatement,
    TableStatement,
    TimeClause,
    TypeName,
    ViewStatement,
    Watermark,
)
from millrace.language.grammar.statements.placed import (
    Length,
    MonthLength,
    Name,
    NumberOfRows,
    Options,
    Placed,
    Setting,
)
from millrace.language.grammar.statements.requests import (
    AccessClause,
    AlterStatement,
    DescribeStatement,
    DropStatement,
    ExplainStatement,
    QueryStatement,
    RefreshStatement,
    SetStatement,
    ShowStatement,
)
from millrace.language.grammar.statements.selects import (
    GENERATORS,
    JSON_TUPLE,
    Body,
    ExplodeClause,
    FromItem,
    JoinClause,
    JoinKind,
    OrderItem,
    Select,
    SelectItem,
    SequenceClause,
    WindowClause,
    WindowKind,
)

Declared = StreamStatement | TableStatement | SinkStatement | ViewStatement | AggregateStatement | FunctionStatement
Inspected = ShowStatement | DescribeStatement | ExplainStatement
Asked = QueryStatement | DropStatement | AlterStatement | RefreshStatement | Inspected
Statement = Declared | Asked | SetStatement

__all__ = [
    "GENERATORS",
    "JSON_TUPLE",
    "AccessClause",
    "AggregateStatement",
    "AlterStatement",
    "Asked",
    "Assignment",
    "Blocks",
    "Body",
    "ColumnDefinition",
    "ColumnsClause",
    "ConnectorClause",
    "Declared",
    "DescribeStatement",
    "DropStatement",
    "EtsClause",
    "ExplainStatement",
    "ExplodeClause",
    "FromItem",
    "FunctionStatement",
    "Inspected",
    "JoinClause",
    "JoinKind",
    "Length",
    "MonthLength",
    "Name",
    "NumberOfRows",
    "Options",
    "OrderItem",
    "PartitionsClause",
    "Placed",
    "QueryStatement",
    "RefreshStatement",
    "ReplayClause",
    "Select",
    "SelectItem",
    "SequenceClause",
    "SetStatement",
    "Setting",
    "ShowStatement",
    "SinkStatement",
    "Statement",
    "StreamStatement",
    "TableStatement",
    "TimeClause",
    "TypeName",
    "ViewStatement",
    "Watermark",
    "WindowClause",
    "WindowKind",
]
