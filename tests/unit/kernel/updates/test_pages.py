from __future__ import annotations

import numpy as np
import pytest

from millrace.kernel.updates.pages import Pages


def test_free_locations_of_pages_in_use_are_used_before_a_new_page() -> None:
    pages = Pages(page=4)
    zones = pages.allocate(12)
    pages.release(zones[[1, 2, 6, 11]])
    assert pages.pages == 3
    again = pages.allocate(4)
    assert sorted(again.tolist()) == [1, 2, 6, 11] and pages.pages == 3
    assert pages.allocate(1).tolist() == [12] and pages.pages == 4


def test_a_page_is_filled_before_the_next_one_is_looked_at() -> None:
    pages = Pages(page=4)
    zones = pages.allocate(12)
    pages.release(zones[[0, 1, 4, 5, 8, 9]])
    order = pages.allocate(1).tolist() + pages.allocate(4).tolist() + pages.allocate(1).tolist()
    assert [zone // 4 for zone in order[::2]] == [zone // 4 for zone in order[1::2]]
    assert len({zone // 4 for zone in order}) == 3


def test_a_page_goes_back_to_the_pool_when_its_last_location_is_free() -> None:
    pages = Pages(page=4)
    zones = pages.allocate(8)
    pages.release(zones[:3])
    assert pages.pages == 2
    pages.release(zones[3:4])
    assert pages.pages == 1
    pages.release(zones[4:])
    assert (pages.pages, pages.allocated) == (0, 0)
    assert sorted(pages.allocate(8).tolist()) == list(range(8))


def test_the_unit_is_a_zone() -> None:
    pages = Pages(page=16, zone=5)
    zones = pages.allocate(7)
    assert (pages.pages, pages.allocated) == (3, 35)
    pages.release(zones[:3])
    assert pages.pages == 2


def test_a_zone_that_is_longer_than_a_page_has_a_page_of_its_own() -> None:
    pages = Pages(page=4, zone=10)
    assert pages.allocate(3).tolist() == [0, 1, 2]
    assert (pages.pages, pages.allocated) == (3, 30)


def test_numbers_stay_below_a_capacity_that_doubles() -> None:
    pages, seen = Pages(page=2), []
    for _ in range(200):
        assert int(pages.allocate(1)[0]) < pages.capacity
        seen.append(pages.capacity)
    assert len(set(seen)) < 6
    assert int(pages.allocate(5000).max()) < pages.capacity


def test_what_is_in_use_is_in_use_after_a_restore() -> None:
    pages, restored, empty = Pages(page=4), Pages(page=4), Pages(page=4)
    zones = pages.allocate(30)
    pages.release(zones[::3])
    restored.restore(np.setdiff1d(zones, zones[::3]))
    assert (restored.allocated, restored.pages) == (pages.allocated, pages.pages) == (20, 8)
    assert sorted(restored.allocate(10).tolist()) == sorted(zones[::3].tolist()) and restored.pages == 8
    empty.restore(np.empty(0, np.int64))
    assert (empty.allocated, empty.pages) == (0, 0)


def test_what_is_free_cannot_be_released() -> None:
    pages = Pages(page=4)
    zones = pages.allocate(6)
    pages.release(zones[:2])
    with pytest.raises(AssertionError):
        pages.release(zones[:1])
    with pytest.raises(AssertionError):
        pages.release(zones[1:4])
