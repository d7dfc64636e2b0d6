"""Dates and times: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

TIMES = declared("""
year(time DAY) INT
    The year
    year(DATE '2016-07-30')
quarter(time DAY) INT
    The quarter of the year, from 1 to 4
    quarter(DATE '2016-08-31')
month(time DAY) INT
    The month, from 1 to 12
    month(DATE '2016-07-30')
day(time DAY) INT
    The day of the month
    day(DATE '2009-07-30')
    also: dayofmonth
hour(time TIME) INT
    The hour
    hour(TIMESTAMP '2018-02-14 12:58:59')
minute(time TIME) INT
    The minute
    minute(TIMESTAMP '2009-07-30 12:58:59')
second(time TIME) INT
    The second
    second(TIMESTAMP '2018-02-14 12:58:59')
dayofyear(time DAY) INT
    The day of the year
    dayofyear(DATE '2016-04-09')
dayofweek(time DAY) INT
    The day of the week, 1 for Sunday to 7
    dayofweek(DATE '2009-07-30')
dayofweek_iso(time DAY) INT
    The day of the week, 1 for Monday to 7
    dayofweek_iso(DATE '2009-07-30')
weekday(time DAY) INT
    The day of the week, 0 for Monday to 6
    weekday(DATE '2009-07-30')
weekofyear(time DAY) INT
    The week of the year by ISO 8601
    weekofyear(DATE '2008-02-20')
    kernel: week
epoch(time TIME) DOUBLE
    The seconds since 1970, with their fraction
    epoch(TIMESTAMP '1970-01-01 00:00:01.5')
date_part(field UNIT, time TIME) ANY
    A field of a time
    date_part('minute', TIMESTAMP '2019-08-12 01:02:03')
    also: datepart
    forms: EXTRACT(field FROM time)
date_trunc(unit UNIT, time TIME) TIMESTAMP
    The start of the unit that the time is in
    date_trunc('HOUR', TIMESTAMP '2015-03-05 09:32:05')
trunc(date DATE, unit STRING) DATE
    The date at which its year, quarter, month or week began
    trunc('2019-08-04', 'week')
date_format(time TIME, pattern STRING) STRING
    The time as text by a pattern of Spark's
    date_format(DATE '2016-04-08', 'yyyy/MM')
to_char(time TIME, pattern STRING) STRING
    The time as text by a pattern of PostgreSQL's
    to_char(DATE '2016-04-08', 'YYYY/MM')
to_date(value ANY[, pattern STRING]) DATE
    The value as a date, text also by a pattern of Spark's
    to_date('30/07/2009', 'dd/MM/yyyy')
    also: try_to_date
to_timestamp(value ANY[, pattern STRING]) TIMESTAMP
    The value as a time, text also by a pattern of Spark's
    to_timestamp('2016-12-31 00:12', 'yyyy-MM-dd HH:mm')
    also: try_to_timestamp
unix_seconds(time TIMESTAMP) BIGINT
    The seconds since 1970, cut off downwards
    unix_seconds(TIMESTAMP '1970-01-01 00:00:01')
unix_timestamp(time ANY[, pattern STRING]) BIGINT
    The seconds since 1970, cut off downwards; of text by a pattern
    unix_timestamp('2016-04-08', 'yyyy-MM-dd')
    also: to_unix_timestamp
unix_millis(time TIMESTAMP) BIGINT
    The milliseconds since 1970, cut off downwards
    unix_millis(TIMESTAMP '1970-01-01 00:00:01')
unix_micros(time TIMESTAMP) BIGINT
    The microseconds since 1970
    unix_micros(TIMESTAMP '1970-01-01 00:00:01')
timestamp_seconds(seconds NUMBER) TIMESTAMP
    The time so many seconds after 1970
    timestamp_seconds(1230219000)
timestamp_millis(milliseconds WHOLE) TIMESTAMP
    The time so many milliseconds after 1970
    timestamp_millis(1230219000123)
timestamp_micros(microseconds WHOLE) TIMESTAMP
    The time so many microseconds after 1970
    timestamp_micros(1230219000123123)
unix_date(date DATE) INT
    The days since 1970
    unix_date(DATE '1970-01-02')
date_from_unix_date(days INT) DATE
    The date so many days after 1970
    date_from_unix_date(1)
from_unixtime(seconds NUMBER[, pattern STRING]) STRING
    The time so many seconds after 1970 as text
    from_unixtime(0, 'yyyy-MM-dd HH:mm:ss')
dayname(date DAY) STRING
    The name of the day of the week, of three letters
    dayname(DATE '2008-02-20')
monthname(date DAY) STRING
    The name of the month, of three letters
    monthname(DATE '2008-02-20')
date_add(date DATE, days INT[, further ANY]) DATE
    The date so many days later
    date_add('2016-07-30', 1)
    forms: dateadd(unit, count, time)
date_sub(date DATE, days INT) DATE
    The date so many days earlier
    date_sub('2016-07-30', 1)
datediff(end DATE, start DATE[, further ANY]) INT
    How many days lie between two dates
    datediff('2009-07-31', '2009-07-30')
    also: date_diff
    kernel: date_diff
    forms: datediff(unit, start, end)
add_months(date DATE, months INT) DATE
    The date so many months later, at the latest the last of that month
    add_months('2016-08-31', 1)
months_between(end TIMESTAMP, start TIMESTAMP[, rounded BOOLEAN]) DOUBLE
    How many months lie between two times, of 31 days where they are not whole
    months_between('1997-02-28 10:30:00', '1996-10-30')
last_day(date DATE) DATE
    The last day of the month
    last_day('2009-01-12')
next_day(date DATE, weekday STRING) DATE
    The first later date on a day of the week
    next_day('2015-01-14', 'TU')
make_date(year INT, month INT, day INT) DATE
    The date of a year, a month and a day; null if there is none
    make_date(2013, 7, 15)
make_timestamp(year INT, month INT, day INT, hour INT, minute INT, second DECIMAL[, zone STRING]) TIMESTAMP
    The time of its parts, by the clock of a zone; null if there is none
    make_timestamp(2014, 12, 28, 6, 30, 45.887)
    also: make_timestamp_ltz, try_make_timestamp
timestampadd(unit UNIT, count BIGINT, time TIMESTAMP) TIMESTAMP
    The time so many units later
    timestampadd(HOUR, 8, TIMESTAMP '2022-02-11 20:30:00')
    also: dateadd
timestampdiff(unit UNIT, start TIMESTAMP, end TIMESTAMP) BIGINT
    How many whole units lie between two times
    timestampdiff(MONTH, TIMESTAMP '2021-01-31 00:00:00', TIMESTAMP '2021-03-01 00:00:00')
from_utc_timestamp(time TIMESTAMP, zone STRING) TIMESTAMP
    What the clocks of a zone show at a time
    from_utc_timestamp('2016-08-31', 'Asia/Seoul')
to_utc_timestamp(clock TIMESTAMP, zone STRING) TIMESTAMP
    The time at which the clocks of a zone show a time
    to_utc_timestamp('2016-08-31', 'Asia/Seoul')
convert_timezone(source STRING, target STRING[, clock TIMESTAMP]) TIMESTAMP
    What the clocks of a zone show when those of another one show a time
    convert_timezone('Europe/Brussels', 'America/Los_Angeles', TIMESTAMP '2021-12-06 00:00:00')
""")
