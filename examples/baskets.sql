-- Nested JSON, money and arrays: what was sold per city and item, and what a note in JSON says.
CREATE STREAM baskets (
    id INT, shop STRUCT<city: STRING, till: INT>, lines ARRAY<STRUCT<item: STRING, price: DECIMAL(9, 2), qty: INT>>,
    tags MAP<STRING, STRING>, note STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM json OPTIONS (path 'examples/data/baskets.json');

CREATE QUERY sold AS
  SELECT window_start, window_end, shop.city, l.item, sum(l.price * l.qty) AS money, avg(l.price) AS price, count(*) AS n
  FROM baskets [RANGE 1 MINUTE SLIDE 1 MINUTE] LATERAL VIEW inline(lines) l AS item, price, qty
  GROUP BY shop.city, l.item;

CREATE QUERY notes AS
  SELECT id, lines[0].item AS first, size(lines) AS n, tags['kind'] AS kind,
         from_json(note, 'gift BOOLEAN, to STRUCT<name: STRING>').to.name AS recipient, to_json(struct(id, shop)) AS shop
  FROM baskets
  WHERE note IS NOT NULL;
