"""The four models of 002 (Fig. 1): rows that are pushed or pulled, answers that are pushed or pulled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import RequestError, RunError
from tests.e2e.commands import wait_for
from tests.unit.hosts.fed import row

COLUMNS = "symbol STRING, price DOUBLE, ts TIMESTAMP"


def tick(second: float, symbol: str, price: float) -> dict[str, Any]:
    return row(second, symbol=symbol, price=price)


def network(source: Any, query: str = "SELECT symbol, price, ts FROM ticks") -> mr.Network:
    net = mr.Network()
    net.stream("ticks", COLUMNS, time="ts", update_key="symbol", source=source)
    return net.sql(f"CREATE QUERY prices AS {query}")


@contextmanager
def running(source: Any, **options: Any) -> Iterator[mr.Handle]:
    handle = network(source).run(on="local", **options)
    try:
        yield handle
    finally:
        handle.stop()


def price_of(handle: mr.Handle, symbol: str) -> float | None:
    found = handle.latest("prices", symbol)
    return None if found is None else found["price"]


def prices(rows: pa.Table) -> dict[str, float]:
    return {each["symbol"]: each["price"] for each in rows.to_pylist()}


def test_rows_are_pushed_and_answers_are_pushed() -> None:
    ticks, seen, both = mr.Pushed(), {}, Event()

    def take(rows: pa.Table) -> None:
        seen.update(prices(rows))
        if len(seen) == 2:
            both.set()

    with running(ticks) as handle:
        handle.subscribe("prices", take)
        ticks.push([tick(1, "A", 7.0), tick(1, "B", 8.0)])
        assert both.wait(300)
        assert seen == {"A": 7.0, "B": 8.0}


def test_rows_are_pushed_and_answers_are_pulled() -> None:
    ticks = mr.Pushed()
    with running(ticks) as handle:
        assert handle.latest("prices").num_rows == 0
        ticks.push([tick(1, "A", 7.0), tick(1, "B", 8.0)])
        ticks.push(tick(2, "A", 9.0))
        found = handle.latest("prices", refresh=True)
        assert (found.column_names, prices(found)) == (["symbol", "price", "ts"], {"A": 9.0, "B": 8.0})
        assert handle.latest("prices", "C") is None
        assert price_of(handle, "A") == 9.0


def test_rows_are_pulled_and_answers_are_pushed() -> None:
    numbers = count(1)

    def ask() -> list[dict[str, Any]]:
        number = next(numbers)
        return [tick(number, "A", float(number))]

    with running(mr.Polled(ask, every="10 milliseconds")) as handle, handle.changes("prices") as changes:
        seen = [prices(rows)["A"] for rows, _ in zip(changes, range(3), strict=False)]
    assert seen == sorted(seen) and len(set(seen)) == 3


def test_rows_are_pulled_when_answers_are_pulled() -> None:
    asked = count(1)

    def ask() -> list[dict[str, Any]]:
        number = next(asked)
        return [tick(number, "A", float(number))]

    with running(mr.Polled(ask, every="1 hour")) as handle:
        wait_for(lambda: price_of(handle, "A") == 1.0)
        sleep(0.1)
        assert price_of(handle, "A") == 1.0, "it is not asked before the hour is over"
        assert [handle.latest("prices", "A", refresh=True)["price"] for _ in range(3)] == [2.0, 3.0, 4.0]  # type: ignore[index]


def test_an_answer_that_is_refreshed_does_not_wait_for_the_work_of_other_queries() -> None:
    ticks, others = mr.Pushed(), mr.Pushed()
    net = network(ticks)
    net.stream("others", "k INT, ts TIMESTAMP", time="ts", update_key="k", source=others)
    net.sql("CREATE FUNCTION slow(INT) RETURNS INT LANGUAGE PYTHON AS 'tests.e2e.slow_functions:slow'")
    net.sql("CREATE QUERY behind AS SELECT k, slow(k) AS v FROM others")
    handle = net.run(on="local", background=True)
    try:
        others.push([row(1, k=key) for key in range(2_000)])
        wait_for(lambda: handle.metrics().queues["behind"].waiting > 0)
        ticks.push(tick(1, "A", 7.0))
        assert prices(handle.latest("prices", refresh=True)) == {"A": 7.0}
        assert handle.metrics().queues["behind"].waiting > 0
    finally:
        handle.stop()


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_a_run_that_ends_by_itself_takes_all_that_is_pushed_and_asks_once(host: Any) -> None:
    ticks = mr.Pushed()
    for second in range(1, 4):
        ticks.push([tick(second, "A", float(second))])
    ticks.close()
    assert price_of(network(ticks).run(on=host, until="end"), "A") == 3.0
    asked = iter([[tick(1, "A", 1.0)], None, [tick(2, "A", 2.0)]])
    handle = network(mr.Polled(lambda: next(asked))).run(on=host, until="end")
    assert price_of(handle, "A") == 1.0


def test_a_run_until_the_end_waits_until_pushed_rows_are_closed() -> None:
    ticks = mr.Pushed()
    handle = network(ticks).run(on="local", until="end", background=True)
    ticks.push([tick(1, "A", 1.0)])
    wait_for(lambda: price_of(handle, "A") == 1.0)
    ticks.push([tick(2, "A", 2.0)])
    ticks.close()
    handle.wait(300)
    assert price_of(handle, "A") == 2.0
    with pytest.raises(RequestError, match="the stream has been closed"):
        ticks.push([tick(3, "A", 3.0)])


def test_a_callable_that_fails_fails_the_run_and_is_named() -> None:
    def ask() -> list[dict[str, Any]]:
        raise OSError("the line is dead")

    with pytest.raises(RunError, match='asked for rows of stream "ticks" failed: OSError: the line is dead'):
        network(mr.Polled(ask)).run(on="local").wait(300)
    with pytest.raises(RequestError, match="a polled stream needs a callable"):
        mr.Polled([])  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="every is a length of time"):
        mr.Polled(ask, every="soon")


def test_a_query_without_update_key_says_what_to_do() -> None:
    ticks = mr.Pushed()
    net = network(ticks)
    net.stream("plain", COLUMNS, time="ts", source=[])
    net.sql("CREATE QUERY rows AS SELECT symbol, price FROM plain")
    handle = net.run(on="local", until="available")
    for ask in (handle.latest, handle.changes, handle.staleness):
        with pytest.raises(RequestError, match='query "rows" has no update key') as refused:
            ask("rows")
        assert "UPDATE KEY" in refused.value.hint
    with pytest.raises(RequestError, match='there is no query "price"'):
        handle.latest("price")


def test_an_append_query_gives_all_results_and_has_no_latest_ones() -> None:
    net = network([[tick(1, "A", 1.0), tick(2, "A", 2.0)]], "SELECT symbol, price FROM ticks WITH (queue = 'append')")
    handle = net.run(on="local", until="end")
    assert handle.results("prices").column("price").to_pylist() == [1.0, 2.0]
    for ask in (handle.latest, handle.changes, handle.staleness):
        with pytest.raises(RequestError, match="query \"prices\" gives every answer, by queue = 'append'") as refused:
            ask("prices")
        assert "UPDATE KEY" not in refused.value.hint and "queue = 'inplace'" in refused.value.hint


def test_a_filter_that_calls_a_function_drops_the_newest_row_of_a_key_after_it_has_replaced_others() -> None:
    rows = [[tick(1, "A", 7.0), tick(2, "A", -7.0)]]
    cheap = network(rows, "SELECT symbol, price FROM ticks WHERE price > 0").run(on="local", until="end")
    assert prices(cheap.latest("prices")) == {"A": 7.0}
    net = mr.Network()
    net.sql("CREATE FUNCTION half(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'tests.unit.kernel.user_functions:half'")
    net.stream("ticks", COLUMNS, time="ts", update_key="symbol", source=rows)
    net.sql("CREATE QUERY prices AS SELECT symbol, price FROM ticks WHERE half(price) > 0")
    assert prices(net.run(on="local", until="end").latest("prices")) == {}


@pytest.mark.parametrize("kept", [False, True])
def test_a_query_that_appends_for_a_while_has_its_answers_again_when_it_updates_again(
    tmp_path: Path, kept: bool
) -> None:
    ticks, options = mr.Pushed(), {"checkpoint": tmp_path / "state"} if kept else {}
    with running(ticks, **options) as handle:
        ticks.push([tick(1, "A", 7.0), tick(1, "B", 8.0)])
        handle.latest("prices", refresh=True)
        with handle.changes("prices", present=False) as changes:
            handle.alter("prices", queue="append")
            assert changes.take(10) is None and changes.ended
        with pytest.raises(RequestError, match="by queue = 'append'"):
            handle.latest("prices")
        ticks.push([tick(2, "A", 8.5), tick(3, "A", 9.0)])
        wait_for(lambda: len(handle.results("prices")) == 4)
        handle.alter("prices", queue="inplace")
        assert prices(handle.latest("prices")) == {"A": 9.0, "B": 8.0}, "what it gave meanwhile is an answer too"
        with handle.changes("prices", present=False) as changes:
            ticks.push(tick(4, "B", 10.0))
            found = changes.take(10)
            assert found is not None and prices(found) == {"B": 10.0}
    with running(mr.Pushed(), **options) as handle:
        assert prices(handle.latest("prices")) == ({"A": 9.0, "B": 10.0} if kept else {})


def test_a_slow_subscriber_under_load_never_reads_an_old_value_after_a_new_one_and_ends_with_the_newest() -> None:
    ticks, keys, rounds = mr.Pushed(), 200, 200
    seen: dict[str, float] = {}
    tables = 0

    def read(changes: Any) -> None:
        nonlocal tables
        for rows in changes:
            tables += 1
            fresh = prices(rows)
            assert len(fresh) == rows.num_rows
            assert all(seen.get(symbol, -1.0) < price for symbol, price in fresh.items())
            seen.update(fresh)
            sleep(0.02)

    handle = network(ticks).run(on="local", until="end", background=True)
    reading = Thread(target=read, args=(handle.changes("prices"),))
    reading.start()
    for number in range(rounds):
        ticks.push([tick(number, f"S{key}", float(number)) for key in range(keys)])
    ticks.close()
    handle.wait(300)
    reading.join(300)
    assert not reading.is_alive()
    assert seen == {f"S{key}": float(rounds - 1) for key in range(keys)}
    assert tables < rounds


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_the_latest_answer_of_a_window_query_is_that_of_the_newest_window_of_each_group(host: Any) -> None:
    rows = [tick(second, "AB"[second % 2], float(second)) for second in range(30)]
    query = (
        "SELECT window, symbol, max(price) AS top FROM ticks [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY symbol"
    )
    handle = network([rows, [tick(40, "A", 40.0)]], query).run(on=host, until="end")
    found = {each["symbol"]: (each["window_start"].second, each["top"]) for each in handle.latest("prices").to_pylist()}
    assert found == {"A": (40, 40.0), "B": (20, 29.0)}
    assert handle.latest("prices").column_names[0] == "symbol"


def test_an_update_stream_without_key_columns_has_one_answer() -> None:
    net = mr.Network()
    net.stream("ticks", COLUMNS, time="ts", update_key=[], source=[[tick(1, "A", 1.0), tick(2, "B", 2.0)]])
    handle = net.sql("CREATE QUERY prices AS SELECT symbol, price FROM ticks").run(on="local", until="end")
    assert handle.latest("prices").to_pylist() == [handle.latest("prices", ())] == [{"symbol": "B", "price": 2.0}]


def test_staleness_is_given_by_key() -> None:
    ticks = mr.Pushed()
    with running(ticks) as handle:
        ticks.push([tick(1, "A", 7.0), tick(1, "B", 8.0)])
        handle.latest("prices", refresh=True)
        found = handle.staleness("prices")
        assert sorted(found.column("symbol").to_pylist()) == ["A", "B"]
        assert found.column("waiting").to_pylist() == [False, False]
        assert set(found.column("application_now").to_pylist()) == {0}


def test_answers_outlive_a_restart_with_a_checkpoint(tmp_path: Path) -> None:
    ticks = mr.Pushed()
    with running(ticks, checkpoint=tmp_path / "state") as handle:
        ticks.push([tick(1, "A", 7.0), tick(1, "B", 8.0)])
        wait_for(lambda: handle.latest("prices").num_rows == 2)
    ticks = mr.Pushed()
    with running(ticks, checkpoint=tmp_path / "state") as handle:
        assert prices(handle.latest("prices")) == {"A": 7.0, "B": 8.0}
        ticks.push([tick(2, "B", 9.0)])
        assert prices(handle.latest("prices", refresh=True)) == {"A": 7.0, "B": 9.0}
    with running(mr.Pushed(), checkpoint=tmp_path / "state") as handle:
        assert prices(handle.latest("prices")) == {"A": 7.0, "B": 9.0}


def test_a_query_that_leaves_ends_its_subscriptions_and_another_of_its_name_begins_anew() -> None:
    ticks = mr.Pushed()
    with running(ticks) as handle:
        handle.add("ADD QUERY high AS SELECT symbol, price FROM ticks WHERE price > 5")
        ticks.push([tick(1, "A", 7.0)])
        assert handle.latest("high", refresh=True).num_rows == 1
        changes = handle.changes("high", present=False)
        handle.drop("high")
        assert changes.take(10) is None and changes.ended
        assert handle.latest("high").num_rows == 1, "what it had answered can still be read"
        handle.add("ADD QUERY high AS SELECT symbol, price FROM ticks WHERE price > 6")
        assert handle.latest("high").num_rows == 0
        ticks.push([tick(2, "B", 8.0)])
        assert prices(handle.latest("high", refresh=True)) == {"B": 8.0}


def test_the_answers_of_a_run_that_failed_are_not_given_as_if_nothing_had_happened() -> None:
    ticks = mr.Pushed()
    with pytest.raises(RunError, match="do not fit"), running(ticks) as handle:
        ticks.push([{"symbol": "A", "price": "much", "ts": "1970-01-01 00:00:01"}])
        with pytest.raises(RunError, match="do not fit"):
            handle.wait()
        with pytest.raises(RunError, match="do not fit"):
            handle.latest("prices")


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_who_follows_a_run_that_fails_reads_its_last_answers_and_then_what_made_it_fail(host: Any) -> None:
    go_on = Event()

    def feed() -> Iterator[list[dict[str, Any]]]:
        yield [tick(1, "A", 7.0)]
        assert go_on.wait(300)
        yield [{"symbol": "A", "price": "much", "ts": "1970-01-01 00:00:02"}]

    handle = network(feed()).run(on=host, background=True)
    changes, subscription = handle.changes("prices"), handle.subscribe("prices", lambda rows: None)
    go_on.set()
    with pytest.raises(RunError, match="do not fit"):
        for rows in changes:
            assert prices(rows) == {"A": 7.0}
    with pytest.raises(RunError, match="do not fit"):
        changes.take(1)
    changes.close()
    assert changes.take(1) is None, "who has closed it has asked for no more"
    wait_for(lambda: subscription.ended)


def test_a_query_that_leaves_a_run_ends_its_changes_without_an_error() -> None:
    with running(mr.Pushed()) as handle, handle.changes("prices") as changes:
        handle.add("ADD QUERY other AS SELECT symbol, price FROM ticks WHERE price > 1")
        handle.drop("prices")
        assert list(changes) == []


# HTTP


def fetch(url: str, method: str = "GET", **headers: str) -> Any:
    with urlopen(Request(url, headers=headers, method=method), timeout=300) as answer:
        return json.loads(answer.read())


def refusal(url: str, **headers: str) -> tuple[int, dict[str, str]]:
    with pytest.raises(HTTPError) as refused:
        fetch(url, **headers)
    with refused.value as error:
        return error.code, json.loads(error.read())


def test_answers_are_served_over_http() -> None:
    ticks = mr.Pushed()
    with running(ticks) as handle, handle.serve() as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        ticks.push([tick(1, "A", 7.0), tick(1, "A b/c", 8.0)])
        (first, second) = fetch(f"{server.url}/refresh/prices", method="POST")
        assert first == {"symbol": "A", "price": 7.0, "ts": "1970-01-01 00:00:01"}
        assert fetch(f"{server.url}/latest/prices?symbol=A%20b%2Fc") == second
        assert fetch(f"{server.url}/queries") == [
            {"query": "prices", "key": ["symbol"], "keys": 2, "columns": ["symbol", "price", "ts"]}
        ]
        assert {each["symbol"] for each in fetch(f"{server.url}/staleness/prices")} == {"A", "A b/c"}


def test_what_cannot_be_served_is_refused_with_a_reason() -> None:
    with running(mr.Pushed()) as handle, handle.serve() as server:
        assert refusal(f"{server.url}/latest/prices?symbol=Z")[0] == 404
        assert refusal(f"{server.url}/latest/price") == (
            404,
            {"error": 'there is no query "price"', "hint": 'Did you mean "prices"? The queries are prices.'},
        )
        assert refusal(f"{server.url}/latest/prices?price=Z")[0] == 400
        assert refusal(f"{server.url}/elsewhere")[0] == 404
        assert refusal(f"{server.url}/latest/prices?symbol=A&symbol=B")[1]["error"] == '"symbol" is given twice'
        with pytest.raises(HTTPError, match="400"):
            urlopen(f"{server.url}/changes/prices?present=maybe")
        status, said = refusal(f"{server.url}/queries", Host="evil.example")
        assert (status, said["error"]) == (400, 'the request is for the host "evil.example", which is not this server')
        with pytest.raises(RequestError, match=f"port {server.port} cannot be used"):
            handle.serve(server.port)


def events(url: str) -> Iterator[tuple[str, Any]]:
    with urlopen(url, timeout=300) as stream:
        name = ""
        for line in stream:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: "):
                yield name, json.loads(text.removeprefix("data: "))


def test_changes_are_server_sent_events_until_the_run_ends() -> None:
    ticks = mr.Pushed()
    with running(ticks) as handle, handle.serve() as server:
        ticks.push([tick(1, "A", 7.0)])
        handle.latest("prices", refresh=True)
        stream = events(f"{server.url}/changes/prices")
        name, rows = next(stream)
        assert (name, [each["price"] for each in rows]) == ("change", [7.0])
        ticks.push([tick(2, "B", 8.0)])
        name, rows = next(stream)
        assert (name, [each["symbol"] for each in rows]) == ("change", ["B"])
        handle.stop()
        assert next(stream) == ("end", [])
        with pytest.raises(URLError):
            fetch(f"{server.url}/queries")


def test_who_follows_over_http_is_told_what_made_a_run_fail() -> None:
    ticks = mr.Pushed()
    handle = network(ticks).run(on="local", background=True)
    server = handle.serve()
    ticks.push([tick(1, "A", 7.0)])
    stream = events(f"{server.url}/changes/prices")
    assert next(stream)[0] == "change"
    ticks.push([{"symbol": "A", "price": "much", "ts": "1970-01-01 00:00:02"}])
    name, said = next(stream)
    assert name == "error" and set(said) == {"error", "hint"} and "do not fit" in said["error"]
    assert next(stream) == ("end", [])


def test_a_server_closes_while_someone_follows() -> None:
    with running(mr.Pushed()) as handle:
        server = handle.serve()
        stream = events(f"{server.url}/changes/prices")
        reading = Thread(target=lambda: list(stream), daemon=True)
        reading.start()
        sleep(0.2)
        closing = Thread(target=server.close, daemon=True)
        closing.start()
        for each in (closing, reading):
            each.join(300)
            assert not each.is_alive()
