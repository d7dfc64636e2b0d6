"""Each trade with the quote in force, though the quotes come late: written in Python."""

import millrace as mr

trades = [
    {"symbol": "A", "price": 10.2, "ts": "2024-03-01 12:00:02"},
    {"symbol": "B", "price": 7.5, "ts": "2024-03-01 12:00:03"},
    {"symbol": "A", "price": 10.4, "ts": "2024-03-01 12:00:09"},
]
quotes = [
    {"symbol": "A", "bid": 10.1, "ts": "2024-03-01 12:00:01"},
    {"symbol": "A", "bid": 10.3, "ts": "2024-03-01 12:00:05"},
    {"symbol": "A", "bid": 10.2, "ts": "2024-03-01 12:00:02"},
]

net = mr.Network()
traded = net.stream("trades", "symbol STRING, price DOUBLE, ts TIMESTAMP", time="ts", source=[trades])
quoted = net.stream(
    "quotes", "symbol STRING, bid DOUBLE, ts TIMESTAMP", time="ts", disorder="5 seconds", source=[quotes]
)
found = traded.asof_join(quoted, on="symbol", how="left").select("trades.ts", "trades.symbol", "price", "bid")
handle = net.query("found", found.order_by_time()).run(on="local", until="end")

for row in handle.results("found").to_pylist():
    print(f"{row['ts']:%H:%M:%S} {row['symbol']} {row['price']} {row['bid']}")
