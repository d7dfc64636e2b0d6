"""Intervals: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

INTERVALS = declared("""
make_dt_interval([days BIGINT][, hours BIGINT][, minutes BIGINT][, seconds NUMBER]) INTERVAL DAY TO SECOND
    A length of time
    make_dt_interval(1, 2, 3, 4.5)
make_ym_interval([years BIGINT][, months BIGINT]) INTERVAL YEAR TO MONTH
    A number of months
    make_ym_interval(2, 3)
""")
