-- Scalar functions in selects, conditions, keys of groups and joins, with expressions over elements.
CREATE STREAM talks (id INT, name STRING, prices ARRAY<DOUBLE>, tags MAP<STRING, STRING>, rate DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM json OPTIONS (path 'inputs/talks.json');

CREATE QUERY texts AS
  SELECT id, initcap(name) AS title, split(name, '[ -]') AS words, regexp_replace(name, '(\\w+) (\\w+)', '$2 $1') AS turned,
         lpad(id, 3, '0') AS padded, md5(name) AS digest, hash(name, id) AS hashed, format_string('%s: %05.2f', name, rate) AS line
  FROM talks
  WHERE name RLIKE '^[a-z]' OR exists(prices, p -> p > 5);

CREATE QUERY elements AS
  SELECT id, transform(prices, (p, i) -> round(p * rate, 1) + i) AS paid, filter(prices, p -> p > rate) AS dear,
         aggregate(prices, 0.0, (total, p) -> total + p, total -> total / size(prices)) AS mean,
         map_filter(tags, (k, v) -> v <> 'x') AS kept, array_sort(map_keys(tags), (a, b) -> length(b) - length(a)) AS longest
  FROM talks;

CREATE QUERY times AS
  SELECT id, date_format(from_utc_timestamp(ts, 'America/New_York'), 'yyyy-MM-dd HH:mm') AS there, add_months(ts, 1) AS next,
         to_utc_timestamp(ts, 'America/New_York') AS back, dayname(ts) AS day, timestampdiff(MINUTE, DATE '2024-03-10', ts) AS minutes
  FROM talks;

CREATE QUERY groups AS
  SELECT window_start, window_end, upper(left(name, 1)) AS letter, count(*) AS n, max(array_max(prices)) AS most, sum(pmod(-id, 4)) AS rests
  FROM talks [RANGE 1 HOUR SLIDE 1 HOUR]
  GROUP BY upper(left(name, 1));

CREATE QUERY pairs AS
  SELECT x.id AS one, y.id AS other, array_intersect(x.prices, y.prices) AS same
  FROM talks [RANGE 1 HOUR] AS x JOIN talks [RANGE 1 HOUR] AS y ON soundex(x.name) = soundex(y.name)
  WHERE x.id < y.id;
