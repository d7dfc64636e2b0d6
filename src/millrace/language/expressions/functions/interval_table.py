"""Intervals: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

INTERVALS = declared("""
make_dt_interval([days INT][, hours INT][, minutes INT][, seconds NUMBER]) INTERVAL DAY TO SECOND
    A length of time
    make_dt_interval(1, 2, 3, 4.5)
make_ym_interval([years INT][, months INT]) INTERVAL YEAR TO MONTH
    A number of months
    make_ym_interval(2, 3)
""")
