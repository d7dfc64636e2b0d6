"""The live page in a real browser, against a network that runs on Spark in the session of the tests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser import chromium
from tests.e2e.test_page import Shop, opened, shot, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_page_shows_a_run_on_spark_its_micro_batches_and_what_holds_it_back(spark_session: Any) -> None:
    shop = Shop(on="spark")
    try:
        with chromium() as browser, opened(browser, shop) as page:
            until(page, "millrace.newest.streams.clicks.received > 0")
            until(page, "Object.values(millrace.newest.operators).some((each) => each.rows_in > 0)")
            page.wait_for_selector("#canvas .flow.moving")
            page.wait_for_selector("#batches .batch")
            assert "took" in page.locator("#batches .sentence").first.inner_text()
            assert "buckets" in page.locator("#batches").inner_text()
            assert "all rows came in order; you declared ORDERED" in page.locator("[data-stream=clicks]").inner_text()
            until(page, "millrace.newest.queries.bought.latency?.p99 > 0")
            assert "LATENCY P99" in page.locator(".card[data-query=bought]").inner_text().upper()
            shot(page, "spark")
            shop.silent.set()
            why = page.locator(".why.stuck[data-query=bought]")
            why.wait_for()
            assert 'bought waits for stream "orders"' in why.inner_text()
            assert "orders" in page.locator("#canvas .node.cause .title").all_text_contents()
            page.fill("#change-text", "ADD QUERY big AS SELECT user, amount FROM orders WHERE amount > 1")
            page.click("text=Show what changes")
            page.click("text=Confirm")
            page.wait_for_selector("#canvas [data-node=big]")
            page.click("[aria-label='Drop big']")
            page.click("text=Confirm")
            page.wait_for_selector("#canvas [data-node=big]", state="detached")
    finally:
        shop.stop()
