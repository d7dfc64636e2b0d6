from __future__ import annotations

import numpy as np
import pytest

from millrace.kernel.pages import NaivePages, Pages

BOTH = pytest.mark.parametrize("kind", [Pages, NaivePages])


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
    assert (pages.pages, pages.used, pages.allocated) == (0, 0, 0)
    assert sorted(pages.allocate(8).tolist()) == list(range(8))


def test_the_unit_is_a_zone() -> None:
    pages = Pages(page=16, zone=5)
    zones = pages.allocate(7)
    assert (pages.pages, pages.used, pages.allocated) == (3, 35, 35)
    pages.release(zones[:3])
    assert pages.pages == 2


def test_a_zone_that_is_longer_than_a_page_has_a_page_of_its_own() -> None:
    pages = Pages(page=4, zone=10)
    assert pages.allocate(3).tolist() == [0, 1, 2]
    assert (pages.pages, pages.used) == (3, 30)


@BOTH
def test_numbers_stay_below_a_capacity_that_doubles(kind: type[Pages]) -> None:
    pages, seen = kind(page=2), []
    for _ in range(200):
        assert int(pages.allocate(1)[0]) < pages.capacity
        seen.append(pages.capacity)
    assert len(set(seen)) < 6
    assert int(pages.allocate(5000).max()) < pages.capacity


@BOTH
def test_an_owner_that_has_a_location_keeps_it(kind: type[Pages]) -> None:
    pages = kind(page=4)
    first = pages.allocate_for(np.array([3, 0, 3, 1, 2]))
    assert first[0] == first[2] and len(set(first.tolist())) == 4
    assert pages.allocate_for(np.array([2, 3])).tolist() == [first[4], first[0]]
    assert pages.used == 4
    pages.release_of(np.array([3]))
    assert pages.zones_of(np.array([3, 1, 900])).tolist() == [-1, first[3], -1]
    assert pages.used == 3


def test_the_naive_manager_keeps_a_location_for_every_owner_ever_seen() -> None:
    pages = NaivePages(page=4, zone=3)
    first = pages.allocate_for(np.arange(10))
    pages.release_of(np.arange(10))
    assert (pages.used, pages.allocated, pages.pages) == (0, 30, 10)
    assert pages.allocate_for(np.array([7])).tolist() == [first[7]]
    assert (pages.used, pages.allocated) == (3, 30)


@BOTH
def test_what_is_in_use_is_in_use_after_a_restore(kind: type[Pages]) -> None:
    pages = kind(page=4)
    owners = np.arange(30)
    pages.allocate_for(owners)
    pages.release_of(owners[::3])
    owners = np.setdiff1d(owners, owners[::3])
    restored = kind(page=4)
    restored.restore(pages.save(), pages.zones_of(owners), owners)
    assert (restored.used, restored.allocated, restored.pages) == (pages.used, pages.allocated, pages.pages)
    assert restored.zones_of(np.arange(30)).tolist() == pages.zones_of(np.arange(30)).tolist()
    again = restored.allocate_for(np.arange(30))
    assert len(set(again.tolist())) == 30 and restored.pages == pages.pages
    empty = kind(page=4)
    empty.restore(kind(page=4).save(), np.empty(0, np.int64))
    assert (empty.used, empty.allocated, empty.pages) == (0, 0, 0)


def test_what_is_free_cannot_be_released() -> None:
    pages = Pages(page=4)
    zones = pages.allocate(6)
    pages.release(zones[:2])
    with pytest.raises(AssertionError):
        pages.release(zones[:1])
    with pytest.raises(AssertionError):
        pages.release(zones[1:4])
    with pytest.raises(AssertionError):
        pages.release_of(np.array([5]))
