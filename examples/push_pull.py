"""The four ways in which rows come in and answers go out: both may be pushed or pulled."""

from itertools import count

import millrace as mr


def prices(source: mr.Pushed | mr.Polled) -> mr.Network:
    """The latest price of each symbol, whatever its rows come from."""
    net = mr.Network()
    ticks = net.stream("ticks", "symbol STRING, price INT, ts TIMESTAMP", time="ts", update_key="symbol", source=source)
    return net.query("prices", ticks.select("symbol", "price"))


numbers = count(1)


def ask() -> list[dict[str, object]]:
    """What a sensor or a service says when it is asked."""
    number = next(numbers)
    return [{"symbol": "A", "price": 100 + number, "ts": f"2024-03-01 12:00:{number:02d}"}]


# Rows are pushed, answers are pulled.
pushed = mr.Pushed()
handle = prices(pushed).run(on="local")
pushed.push([{"symbol": "A", "price": 7, "ts": "2024-03-01 12:00:01"}])
pushed.push([{"symbol": "B", "price": 8, "ts": "2024-03-01 12:00:01"}])
pushed.push([{"symbol": "A", "price": 9, "ts": "2024-03-01 12:00:02"}])
print("push, pull:", handle.latest("prices", refresh=True).to_pylist())
print("push, pull:", handle.latest("prices", "A"), handle.latest("prices", "C"))

# Rows are pushed, answers are pushed: the newest of each symbol, however slowly they are read.
with handle.changes("prices", present=False) as changes:
    pushed.push([{"symbol": "B", "price": 10, "ts": "2024-03-01 12:00:03"}])
    print("push, push:", next(changes).to_pylist())
handle.stop()

# Rows are pulled when an answer is pulled.
handle = prices(mr.Polled(ask, every="1 hour")).run(on="local")
with handle.changes("prices") as changes:
    print("pull, pull:", next(changes).to_pylist())
print("pull, pull:", handle.latest("prices", "A", refresh=True))
handle.stop()

# Rows are pulled, answers are pushed.
handle = prices(mr.Polled(ask, every="50 milliseconds")).run(on="local")
with handle.changes("prices") as changes:
    print("pull, push:", next(changes).to_pylist())
handle.stop()
