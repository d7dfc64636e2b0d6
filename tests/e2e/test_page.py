"""The live page in a real browser, against networks that run on the local host."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

import millrace as mr
from millrace.api.http import http_limits
from millrace.dashboard import frames, sampler
from millrace.hosts.run_options import HostName
from tests.browser import chromium
from tests.e2e.commands import wait_for
from tests.unit.api.pushed_run import pushed_run

pytestmark = pytest.mark.slow
PATIENCE = 240_000
"""Milliseconds, on a machine that has other work."""
TEXT = """
CREATE QUERY per_page AS
  SELECT page, count(*) AS n FROM clicks [RANGE 1 SECOND SLIDE 1 SECOND WA ts] WHERE page <> 'health' GROUP BY page;
CREATE QUERY bought AS
  SELECT clicks.user, orders.amount FROM clicks [RANGE 2 SECONDS], orders [RANGE 2 SECONDS]
  WHERE clicks.user = orders.user
  ORDER BY ts
"""


class Shop:
    """A run with two streams, of which one can fall silent, and the page of it."""

    def __init__(self, port: int = 0, skew: str | None = None, on: HostName = "local") -> None:
        self.clicks, self.orders = mr.Pushed(), mr.Pushed()
        network = mr.Network()
        network.stream(
            "clicks", "user STRING, page STRING, ts TIMESTAMP", time="ts", skew="1 second", source=self.clicks
        )
        network.stream("orders", "user STRING, amount DOUBLE, ts TIMESTAMP", time="ts", skew=skew, source=self.orders)
        network.sql(TEXT)
        self.handle = network.run(on=on, background=True)
        self.server = self.handle.serve(port)
        self.silent = Event()
        self._ended = Event()
        self._thread = Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        while not self._ended.wait(0.05):
            now = datetime.now(UTC) - timedelta(milliseconds=10)
            self.clicks.push([{"user": "ann", "page": "home", "ts": now}, {"user": "bob", "page": "health", "ts": now}])
            if not self.silent.is_set():
                self.orders.push([{"user": "ann", "amount": 1.5, "ts": now}])

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self.handle.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "EVERY", 0.2)
    monkeypatch.setattr(frames, "HELD_AFTER", 600_000)


@pytest.fixture
def shop() -> Iterator[Shop]:
    found = Shop()
    yield found
    found.stop()


@pytest.fixture
def page(browser: Any, shop: Shop) -> Iterator[Any]:
    with opened(browser, shop) as found:
        yield found


class opened:
    """The page of a shop in a context of its own; at the end it must have said nothing on the console."""

    def __init__(self, browser: Any, shop: Shop | SimpleNamespace, **options: Any) -> None:
        self._context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self._context.set_default_timeout(PATIENCE)
        self._said: list[str] = []
        self._asked: list[str] = []
        self._missing: list[str] = []
        self._own = shop.server.url
        self.page = self._context.new_page()
        self.page.on(
            "console", lambda each: self._said.append(each.text) if each.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda each: self._said.append(str(each)))
        self.page.on("request", lambda each: self._asked.append(each.url))
        self.page.on("response", lambda each: self._missing.append(each.url) if each.status == 404 else None)
        self.page.goto(shop.server.page)

    def __enter__(self) -> Any:
        self.page.wait_for_selector("#canvas .node")
        self.page.wait_for_selector("#streams .card")
        return self.page

    def __exit__(self, *_: object) -> None:
        self._context.close()
        # A refusal, a server that has gone, and a look at a query just when it is dropped are no errors of the page.
        known = ("ERR_CONNECTION", "ERR_INCOMPLETE", "status of 400", "status of 404")
        of_queries = ("/page/results/", "/staleness/", "/latest/")
        assert [url for url in self._missing if not any(part in url for part in of_queries)] == []
        errors = [each for each in self._said if not any(words in each for words in known)]
        assert errors == []
        assert [url for url in self._asked if not url.startswith(self._own)] == []


def until(page: Any, condition: str) -> None:
    """Wait for a condition; the page itself may not evaluate text, which is how Playwright would wait."""
    wait_for(lambda: page.evaluate(condition) or page.wait_for_timeout(50), PATIENCE / 1000)


def shot(page: Any, name: str) -> None:
    """Keep a picture of the page, where a folder for that is named."""
    if folder := os.environ.get("MILLRACE_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_the_graph_appears_and_its_flows_move(page: Any, shop: Shop) -> None:
    titles = page.locator("#canvas .node .title").all_text_contents()
    assert {"clicks", "orders", "per_page", "bought", "join", "window aggregate", "filter"} <= set(titles)
    page.wait_for_selector("#canvas .flow.moving")
    until(page, "[...document.querySelectorAll('.arc')].some((arc) => Number(arc.dataset.rate) > 0)")
    before = page.evaluate("millrace.newest.streams.clicks.received")
    until(page, f"millrace.newest.streams.clicks.received > {before}")
    page.wait_for_selector("[data-query=per_page] table")
    assert page.locator(".pill").inner_text() == "live"
    shot(page, "graph")


def test_a_silent_stream_is_named_in_red_with_the_sentence_of_why(page: Any, shop: Shop) -> None:
    shop.silent.set()
    why = page.locator(".why.stuck[data-query=bought]")
    why.wait_for()
    assert 'bought waits for stream "orders"' in why.inner_text()
    assert "declare ETS ON DEMAND" in why.inner_text()
    stuck = page.locator("#canvas .node.stuck .title").all_text_contents()
    assert {"orders", "join", "bought"} <= set(stuck) and "clicks" not in stuck and "per_page" not in stuck
    assert page.locator("#canvas .node.cause .title").all_text_contents() == ["orders"]
    colour = page.locator("#canvas .node.cause rect").evaluate("(each) => getComputedStyle(each).stroke")
    assert colour == "rgb(166, 60, 0)"
    assert page.locator("#streams [data-stream=orders]").get_attribute("class") == "card stuck"
    assert "waits for" in page.locator("#queries [data-query=bought] p.sentence").first.inner_text()
    shot(page, "held-back")


def test_an_ets_releases_what_a_silent_stream_held_back(browser: Any) -> None:
    shop = Shop(skew="4 seconds")
    try:
        with opened(browser, shop) as page:
            until(page, "millrace.newest.queries.bought.rows > 0")
            shop.silent.set()
            why = page.locator(".why.stuck[data-query=bought]")
            why.wait_for()
            assert "an ETS at" in why.inner_text()
            page.wait_for_selector(".why.stuck", state="detached")
            assert page.evaluate("millrace.newest.streams.orders.ets") > 0
            assert "Nothing" in page.locator("#why").inner_text()
    finally:
        shop.stop()


def test_a_query_is_added_altered_and_dropped_after_a_confirmation(page: Any, shop: Shop) -> None:
    page.fill("#change-text", "ADD QUERY big AS SELECT user, amount FROM orders WHERE amount > 1")
    page.click("text=Show what changes")
    page.wait_for_selector(".proposal")
    added = page.locator(".difference .added").all_text_contents()
    assert any("query big" in each for each in added) and any("filter" in each for each in added)
    assert "will be added" in page.locator(".proposal .sentence").inner_text()
    assert "big" not in shop.handle.queries
    page.click("text=Cancel")
    assert "big" not in shop.handle.queries
    page.click("text=Show what changes")
    page.click("text=Confirm")
    page.wait_for_selector("[data-done]")
    page.wait_for_selector("#canvas [data-node=big]")
    assert "big" in shop.handle.queries
    page.click("[aria-label='Alter big']")
    assert page.input_value("#change-text") == "ALTER QUERY big SET (strategy = 'bfs')"
    assert page.locator(".proposal").count() == 0
    page.click("text=Show what changes")
    page.wait_for_selector(".proposal >> text=big gets other options")
    page.click("text=Confirm")
    page.wait_for_selector("[data-done]")
    assert shop.handle.queries["big"].options["strategy"] == "bfs"
    page.click("[aria-label='Drop big']")
    page.wait_for_selector(".difference .removed")
    page.click("text=Confirm")
    page.wait_for_selector("#canvas [data-node=big]", state="detached")
    assert "big" not in shop.handle.queries


def test_a_wrong_statement_is_refused_with_its_hint(page: Any, shop: Shop) -> None:
    page.fill("#change-text", "DROP QUERY nothing")
    page.click("text=Show what changes")
    page.wait_for_selector(".refusal >> text=nothing")


def test_the_page_survives_the_end_of_a_run_and_shows_the_next_one(browser: Any) -> None:
    first = Shop()
    port = first.server.port
    with opened(browser, first) as page:
        first.stop()
        page.wait_for_selector("body[data-status=ended]")
        assert page.locator("#canvas .node").count() > 5
        second = Shop(port)
        try:
            page.wait_for_selector("body[data-status=live]")
            page.wait_for_selector("#canvas .flow.moving")
            shown = page.evaluate("millrace.newest.elapsed")
            until(page, f"millrace.newest.elapsed > {shown}")
        finally:
            second.stop()


def test_the_page_says_when_the_run_tells_nothing_and_why(
    page: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> object:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(shop.server.sampler, "_look", failing)
        page.wait_for_selector("body[data-status=stale]")
        assert re.fullmatch(
            r"no figures since \d\d:\d\d:\d\d: OSError: the disk is gone", page.locator("#status").inner_text()
        )
    page.wait_for_selector("body[data-status=live]")


def test_time_can_be_paused_and_turned_back(page: Any, shop: Shop) -> None:
    until(page, "millrace.newest.number > 8")
    page.keyboard.press("p")
    page.wait_for_selector("body[data-status=paused]")
    assert "of when you paused" in page.locator("#queries-past").inner_text()
    rows = page.locator("[data-stream=clicks] .facts-list").inner_text()
    number = page.evaluate("millrace.newest.number")
    until(page, f"millrace.newest.number > {number + 3}")
    assert page.locator("[data-stream=clicks] .facts-list").inner_text() == rows
    page.evaluate(
        "(() => { const s = document.getElementById('scrub'); s.value = 2; s.dispatchEvent(new Event('input')); })()"
    )
    until(page, "millrace.past.number === 2")
    until(page, "millrace.streams.cards.get('clicks').charts[0].moment === millrace.past.at")
    assert page.evaluate("millrace.past.streams.clicks.received < millrace.newest.streams.clicks.received")
    assert re.fullmatch(r"\d\d:\d\d:\d\d", page.locator("#moment").inner_text())
    page.locator("h1").click()
    page.keyboard.press("]")
    until(page, "millrace.past.number === 3")
    page.keyboard.press("[")
    until(page, "millrace.past.number === 2")
    page.keyboard.press("p")
    page.wait_for_selector("body[data-status=live]")
    assert not page.locator("#queries-past").is_visible()


def test_an_operator_shows_its_sql_in_the_text_by_mouse_and_keyboard(page: Any, shop: Shop) -> None:
    page.locator("#canvas .node:has-text('filter')").click()
    assert page.locator("#detail mark").inner_text() == "WHERE page <> 'health'"
    page.keyboard.press("Escape")
    assert not page.locator("#detail").is_visible()
    assert "filter" in page.evaluate("document.activeElement.dataset.node")
    page.locator("#canvas .node:has-text('window aggregate')").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail mark >> text=GROUP BY page")
    assert "State" in page.locator("#detail").inner_text()


def test_names_and_rows_are_shown_as_text_whatever_is_in_them(browser: Any) -> None:
    tag = "<img src=/static/none onerror=document.title=1>"
    network = mr.Network()
    network.sql(
        f"""CREATE STREAM "s{tag}" (`k{tag}` STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (`k{tag}`)
          FROM generate OPTIONS (rate '20', seconds '600') REPLAY BY ts;
        CREATE QUERY "q{tag}" AS SELECT `k{tag}`, '{tag}' AS more FROM "s{tag}" WHERE `k{tag}` <> '</pre><b>{tag}'"""
    )
    handle = network.run(on="local", background=True)
    try:
        with opened(browser, SimpleNamespace(server=handle.serve())) as page:
            page.wait_for_selector("#queries tbody tr")
            page.locator("#canvas .node.query").click()
            page.wait_for_selector("#detail mark")
            page.fill("#change-text", f'ADD QUERY "x{tag}" AS SELECT `k{tag}` FROM "s{tag}"')
            page.click("text=Show what changes")
            page.wait_for_selector(".proposal")
            page.fill("#change-text", f"DROP QUERY `{tag}`")
            page.click("text=Show what changes")
            page.wait_for_selector(".refusal")
            assert tag in page.locator("#queries h3").inner_text()
            assert tag in page.locator("#queries tbody tr").last.inner_text()
            assert page.locator("main img, main b").count() == 0
    finally:
        handle.stop()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, shop: Shop, scheme: str) -> None:
    axe = pytest.importorskip("axe_core_python.sync_playwright", reason="the package axe-core-python is not installed")
    shop.silent.set()
    with opened(browser, shop, color_scheme=scheme, bypass_csp=True) as page:
        page.wait_for_selector(".why.stuck")
        page.locator("#canvas .node:has-text('join')").click()
        page.wait_for_selector("#detail mark")
        found = axe.Axe().run(page)["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in serious] == []


def test_a_key_turns_the_page_dark_and_it_stays_so(page: Any) -> None:
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    page.wait_for_selector("#canvas .node")
    assert before != dark == page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_where_other_machines_can_ask_the_page_asks_for_the_token(browser: Any) -> None:
    token = "a token that nobody guesses"
    with pushed_run() as handle, closing(browser.new_context()) as context:
        server = handle.serve(host="0.0.0.0", token=token)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.port}/")
        for given in ("another token of no use", token):
            page.wait_for_selector("#token-dialog[open]")
            assert page.locator("#canvas .node").count() == 0
            page.fill("#token-input", given)
            page.keyboard.press("Enter")
        page.wait_for_selector("#canvas .node")
        assert page.locator(".pill").inner_text() == "live"


def test_a_phone_shows_all_without_scrolling_sideways(browser: Any, shop: Shop) -> None:
    with opened(browser, shop) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.wait_for_selector("[data-query=per_page] table")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        until(page, "canvas.scrollWidth <= canvas.clientWidth")
        shot(page, "phone")


def test_a_browser_that_stalls_does_not_slow_the_run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "SECONDS", 1.0)
    stalled = []
    for _ in range(5):
        connection = socket.create_connection(("127.0.0.1", shop.server.port), timeout=300)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        host = f"127.0.0.1:{shop.server.port}"
        connection.sendall(f"GET /page/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        stalled.append(connection)
    rows = shop.handle.metrics().sources["clicks"].received
    wait_for(lambda: shop.handle.metrics().sources["clicks"].received > rows + 20)
    number = shop.server.sampler.newest
    wait_for(lambda: shop.server.sampler.newest > number + 5)
    assert shop.server.sampler.trouble is None
    for connection in stalled:
        connection.close()
