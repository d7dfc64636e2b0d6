"""The mean load of each machine over the last ten seconds, every five, written in Python."""

import millrace as mr

rows = [
    {"machine": "m1", "load": 0.50, "ts": "2024-03-01 12:00:01"},
    {"machine": "m2", "load": 0.10, "ts": "2024-03-01 12:00:04"},
    {"machine": "m1", "load": 0.75, "ts": "2024-03-01 12:00:03"},
    {"machine": "m1", "load": 1.00, "ts": "2024-03-01 12:00:12"},
]

net = mr.Network()
loads = net.stream("loads", "machine STRING, load DOUBLE, ts TIMESTAMP", time="ts", disorder="2 seconds", source=[rows])
means = loads.window(range="10 seconds", slide="5 seconds").group_by("machine").agg(load="avg(load)", n="count(*)")
handle = net.query("means", means).run(on="local", until="end")

for row in sorted(handle.results("means").to_pylist(), key=lambda row: (row["window_start"], row["machine"])):
    print(f"{row['window_start']:%H:%M:%S} {row['window_end']:%H:%M:%S} {row['machine']} {row['load']:.3f} {row['n']}")
print(handle.metrics().sources["loads"].received, "rows received")
