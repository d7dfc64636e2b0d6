"""The Nexmark source: the numbers its rules promise, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millrace.connectors.generators.generated_input import make_slice, slices_of
from millrace.connectors.generators.nexmark import COLUMNS, SLICE_EVENTS, TABLES, NexmarkOptions, options_of
from millrace.errors import RequestError
from millrace.kernel.elements import ARRIVED
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.endpoints import Connector, Stream

EVENTS = 2 * SLICE_EVENTS + 7_228


def schema(table: str, *names: str) -> pa.Schema:
    columns = COLUMNS[table]
    return pa.schema([(name, columns[name][0]) for name in names or columns])


def stream(kind: str, **options: object) -> Stream:
    texts = {"table": kind, **{key: str(value) for key, value in options.items()}}
    return Stream("s", schema(kind), TimeContract("external", "date_time"), Connector("nexmark", texts))


def rows(table: str, *names: str, **options: object) -> pa.Table:
    """All rows of a table, by default of a stream of three slices."""
    made = stream(table, **{"events": EVENTS, **options})
    wanted = schema(table, *names)
    return pa.Table.from_batches([make_slice(made, wanted, number) for number in range(slices_of(made))])


def numbers(found: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(found.column(name).cast(pa.int64()).to_numpy())


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_others_bids() -> None:
    found = [rows(table, "date_time", events=50 * 1_310).num_rows for table in ("person", "auction", "bid")]
    assert found == [1_310, 3 * 1_310, 46 * 1_310]


@pytest.mark.parametrize("table", ["person", "auction"])
def test_ids_are_dense_from_1000_on(table: str) -> None:
    found = numbers(rows(table, "id"), "id")
    assert found.tolist() == list(range(1_000, 1_000 + len(found)))


def test_half_of_the_bids_and_three_quarters_of_the_people_are_popular() -> None:
    bids, auctions = rows("bid", "auction", "bidder"), rows("auction", "seller")
    hot_auctions = np.mean(numbers(bids, "auction") % 100 == 0)
    hot_bidders = np.mean(numbers(bids, "bidder") % 100 == 1)
    hot_sellers = np.mean(numbers(auctions, "seller") % 100 == 0)
    assert hot_auctions == pytest.approx(0.5, abs=0.01)
    assert hot_bidders == pytest.approx(0.75, abs=0.01)
    assert hot_sellers == pytest.approx(0.75, abs=0.01)


def test_a_bid_names_an_auction_that_is_open_or_at_most_ten_ahead() -> None:
    bids = rows("bid", "auction", "date_time", rate=1_000)
    event = (numbers(bids, "date_time") - NexmarkOptions().micros(np.array([0]))[0]) // 1_000
    newest = 1_000 + event // 50 * 3 + 2
    ahead = numbers(bids, "auction") - newest
    assert ahead.max() == 10
    assert ahead.min() == -100


def test_prices_are_log_uniform_from_one_to_a_million() -> None:
    prices = numbers(rows("bid", "price"), "price")
    assert prices.min() >= 100 and prices.max() <= 10**8
    assert np.histogram(np.log10(prices), 6, (2, 8))[0] / len(prices) == pytest.approx(1 / 6, abs=0.01)


def test_ten_events_share_a_millisecond_at_the_usual_rate() -> None:
    times = numbers(rows("bid", "date_time", events=100), "date_time")
    assert times[0] == 1_436_918_400_000_000
    assert np.unique(times - times[0], return_counts=True)[1].tolist() == [6, 10, 10, 10, 10, 6, 10, 10, 10, 10]


def test_more_generators_make_times_as_many_times_longer() -> None:
    one, four = (numbers(rows("bid", "date_time", generators=n), "date_time")[-1] for n in (1, 4))
    start = 1_436_918_400_000_000
    assert four - start == pytest.approx(4 * (one - start), abs=4_000)


@pytest.mark.parametrize("size", [2, 50, 1_000, 954])
def test_events_out_of_order_are_the_same_events_late_by_less_than_a_group(size: int) -> None:
    events = size * 60
    straight, shuffled = (
        rows("bid", "auction", "price", "date_time", events=events, out_of_order_group_size=n) for n in (1, size)
    )
    by_all = [(name, "ascending") for name in straight.schema.names if name != ARRIVED]
    assert shuffled.drop([ARRIVED]).sort_by(by_all).equals(straight.drop([ARRIVED]).sort_by(by_all))
    times = numbers(shuffled, "date_time")
    lateness = np.maximum.accumulate(times) - times
    # A hundred microseconds an event, cut to milliseconds.
    assert lateness.max() <= -(-size * 100 // 1_000) * 1_000
    assert size < 50 or lateness.max() > 0


def test_no_row_is_older_than_the_first_event_of_its_group() -> None:
    plan = NexmarkOptions(out_of_order_group_size=100)
    places = np.arange(1_000)
    numbers_sent = plan.event_numbers(places)
    assert sorted(numbers_sent.tolist()) == places.tolist()
    assert (numbers_sent // 100 == places // 100).all()


def test_auctions_last_as_long_as_a_hundred_others_take_to_open_on_average() -> None:
    found = rows("auction", "date_time", "expires")
    lasted = numbers(found, "expires") - numbers(found, "date_time")
    assert lasted.min() >= 1_000 and lasted.max() <= 334_000
    assert lasted.mean() == pytest.approx(167_000, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "wanted"), [("bid", 100), ("auction", 500), ("person", 200)])
def test_extra_fills_a_row_up_to_its_average_size(table: str, wanted: int) -> None:
    found = rows(table)
    texts = [name for name, (kind, _) in COLUMNS[table].items() if kind == pa.string()]
    counted = ["extra"] if table == "bid" else texts
    fixed = {"bid": 32, "auction": 48, "person": 8}[table]
    size = sum(pc.mean(pc.binary_length(found.column(name))).as_py() for name in counted)
    assert size + fixed == pytest.approx(wanted, rel=0.01)


def test_half_of_the_channels_are_popular_and_an_address_belongs_to_a_channel() -> None:
    found = rows("bid", "channel", "url")
    popular = pc.invert(pc.starts_with(found.column("channel"), "channel-"))
    assert pc.mean(popular.cast(pa.int8())).as_py() == pytest.approx(0.5, abs=0.01)
    pairs = found.group_by(["channel", "url"]).aggregate([])
    assert pairs.num_rows == len(found.column("channel").unique())
    cold = pairs.filter(pc.starts_with(pairs.column("channel"), "channel-")).column("url")
    named = pc.match_substring(cold, "&channel_id=")
    assert pc.mean(named.cast(pa.int8())).as_py() == pytest.approx(0.9, abs=0.02)


def test_texts_are_trimmed_letters_and_blanks() -> None:
    names = rows("auction", "item_name").column("item_name")
    assert pc.all(pc.match_substring_regex(names, "^([a-z]([a-z ]*[a-z])?)?$")).as_py()
    assert pc.max(pc.binary_length(names)).as_py() == 19


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_a_row_depends_on_neither_the_other_columns_nor_the_slices_before_it(table: str) -> None:
    whole = rows(table)
    for name in COLUMNS[table]:
        assert rows(table, name).column(name).equals(whole.column(name))
    made = stream(table, events=EVENTS)
    assert make_slice(made, schema(table), 1).equals(make_slice(made, schema(table), 1))


def test_another_seed_gives_other_rows() -> None:
    one, other = (rows("bid", "price", seed=seed) for seed in (1, 2))
    assert not one.equals(other)


def test_whole_numbers_may_be_declared_smaller() -> None:
    found = make_slice(stream("bid"), pa.schema([("price", pa.int32())]), 0)
    assert found.schema.field("price").type == pa.int32()


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"table": "bids"}, 'option "table" does not take "bids"'),
        ({"events": 0}, 'option "events" does not take "0"'),
        ({"rate": "2.5"}, 'option "rate" is "2.5", which is no whole number'),
        ({"generators": -1}, 'option "generators" does not take "-1"'),
        ({"out_of_order_group_size": 1_906}, 'option "out_of_order_group_size" does not take "1906"'),
        ({"start": "soon"}, 'option "start" is "soon", which is no time'),
        ({"keys": 2}, 'stream "s" has no nexmark option "keys"'),
    ],
)
def test_what_cannot_be_generated_is_refused(options: dict[str, object], fact: str) -> None:
    with pytest.raises(RequestError) as raised:
        options_of(stream("bid", **options))
    assert raised.value.fact == fact and raised.value.hint


@pytest.mark.parametrize(
    ("field", "fact"),
    [
        (("id", pa.int64()), 'stream "s" declares "id", which is no column of the nexmark table "bid"'),
        (("url", pa.int64()), 'stream "s" declares the column "url" as int64, and nexmark makes it string'),
    ],
)
def test_a_column_that_the_table_lacks_is_refused(field: tuple[str, pa.DataType], fact: str) -> None:
    with pytest.raises(RequestError) as raised:
        make_slice(stream("bid"), pa.schema([field]), 0)
    assert raised.value.fact == fact and raised.value.hint
