-- Nested values: read from json, taken apart and put together, as keys of groups and joins.
CREATE STREAM baskets (
    id INT, shop STRUCT<city: STRING, place: STRUCT<lat: DOUBLE, lon: DOUBLE>>, prices ARRAY<DECIMAL(7, 2)>,
    lines ARRAY<STRUCT<item: STRING, qty: INT>>, tags MAP<STRING, STRING>, raw STRING, code BINARY, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM json OPTIONS (path 'inputs/baskets.json');

CREATE QUERY parts AS
  SELECT id, shop.city, baskets.shop.place.lat AS lat, prices[0] AS first_price, prices[9] AS none, lines[1].item AS second,
         lines.qty AS quantities, tags['kind'] AS kind, size(lines) AS n, raw, code, length(code) AS bytes,
         array(id, 2 * id) AS twice, struct(id, shop.city AS city, prices) AS made, map('id', id) AS named, ts
  FROM baskets
  WHERE shop IS NOT NULL;

CREATE QUERY by_shop AS
  SELECT window_start, window_end, shop, count(*) AS n, sum(prices[0]) AS total, first(lines) AS lines, max(shop.place.lat) AS lat
  FROM baskets [RANGE 1 MINUTE SLIDE 1 MINUTE]
  GROUP BY shop;

CREATE QUERY by_field AS
  SELECT window_start, window_end, shop.city, count(*) AS n FROM baskets [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY shop.city;

CREATE QUERY pairs AS
  SELECT x.id AS one, y.id AS other, x.lines
  FROM baskets [RANGE 1 HOUR] AS x, baskets [RANGE 1 HOUR] AS y
  WHERE x.shop = y.shop AND x.id < y.id AND x.shop.city <> 'Nowhere';

CREATE QUERY shops AS SELECT DISTINCT shop, ts FROM baskets;

-- JSON in a text.
CREATE QUERY parsed AS
  SELECT id, raw:a[1] AS a, from_json(raw, 'a ARRAY<DECIMAL(4, 1)>, b STRING') AS read, to_json(shop) AS shop,
         json_value(raw, '$.b') AS b, json_query(raw, '$.a') AS q, json_tuple(raw, 'b', 'c')
  FROM baskets;

-- A row per element.
CREATE QUERY sold AS
  SELECT id, u.item, qty, n, ts FROM baskets CROSS JOIN UNNEST(lines) WITH ORDINALITY AS u (item, qty, n) WHERE n < 3;

CREATE QUERY prices AS SELECT id, explode(prices) AS price, ts FROM baskets WHERE id <> 2;

CREATE QUERY tagged AS SELECT id, t.name, value FROM baskets LATERAL VIEW OUTER explode(tags) t AS name, value;

CREATE QUERY spent AS
  SELECT window_start, window_end, l.item, sum(price) AS spent, max(place) AS most, count(*) AS n
  FROM baskets [RANGE 1 MINUTE SLIDE 1 MINUTE]
    LATERAL VIEW inline(lines) l AS item, qty LATERAL VIEW posexplode(prices) p AS place, price
  GROUP BY l.item;

CREATE QUERY matched AS
  SELECT x.id, y.id AS other, l.item, p.price
  FROM baskets [RANGE 1 HOUR] AS x JOIN baskets [RANGE 1 HOUR] AS y ON x.shop = y.shop
    LATERAL VIEW inline(x.lines) l AS item, qty LEFT JOIN UNNEST(y.prices) AS p (price) ON TRUE
  WHERE l.qty > 0 AND x.id <= y.id;

CREATE QUERY fields AS
  SELECT id, b, c, shop.*, to_json(struct(id, j.*)) AS made FROM baskets LATERAL VIEW json_tuple(raw, 'b', 'c') j AS b, c WHERE b IS NOT NULL OR id > 5;

CREATE QUERY entries AS SELECT id, explode(tags) AS (name, tag) FROM baskets;

-- An element may have the name of a column of its row.
CREATE QUERY same_names AS SELECT id, posexplode(prices) AS (shop, prices), ts FROM baskets WHERE id <> 2;
