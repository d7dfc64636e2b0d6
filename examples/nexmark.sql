-- Bids of an auction house, up to a second out of order: Nexmark's query 5, and two like its others.
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, date_time TIMESTAMP)
  TIMESTAMP BY date_time DISORDER INTERVAL 1 SECOND
  FROM nexmark OPTIONS (table 'bid', events '20000', rate '1000', out_of_order_group_size '1000');

-- The auctions with the most bids of the last 10 seconds, every 2 seconds.
SELECT window_start, window_end, auction, bids
FROM (SELECT window_start, window_end, auction, count(*) AS bids FROM bid [RANGE 10 SECONDS SLIDE 2 SECONDS WA date_time] GROUP BY auction)
QUALIFY rank() OVER (PARTITION BY window_start, window_end ORDER BY bids DESC) = 1;

-- The three keenest bidders of every 10 seconds.
SELECT window_start, window_end, bidder, bids
FROM (SELECT window_start, window_end, bidder, count(*) AS bids FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS WA date_time] GROUP BY bidder)
QUALIFY row_number() OVER (PARTITION BY window_start, window_end ORDER BY bids DESC) <= 3;

-- What came in through the great channels, a day.
SELECT channel, date_format(date_time, 'yyyy-MM-dd') AS day, count(*) AS bids,
  count(*) FILTER (WHERE price >= 1000000) AS dear, count(DISTINCT bidder) AS bidders, max(price) AS best
FROM bid
WHERE channel IN ('Apple', 'Baidu', 'Facebook', 'Google')
GROUP BY channel, date_format(date_time, 'yyyy-MM-dd');
