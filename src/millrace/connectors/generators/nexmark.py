"""The three streams of Nexmark: bids, auctions and persons of an auction house, by the rules of its generator.

Of 50 events one is a person, three are auctions and 46 are bids; `events` counts them all, and a stream holds those of
its own table. A row depends on the seed and its event's number only. Within a group of `out_of_order_group_size`
events their order is a fixed permutation. A bid or an auction may name a person or an auction that is yet to come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.generators.draws import Draws, Numbers
from millrace.connectors.generators.recipes import check_choice, check_positive, read_recipe, start_micros
from millrace.errors import RequestError
from millrace.kernel.elements import ARRIVED
from millrace.plan.nodes.endpoints import TIMESTAMP, Stream

SLICE_EVENTS = 65_536
TABLES = ("bid", "auction", "person")
SHUFFLE = 953
"""Steps of this prime number walk through a group of events; a group of a multiple of it would not be filled."""

_PERSONS, _AUCTIONS, _ROUND = 1, 3, 50
_PLACES = {"person": (0, 1), "auction": (1, 4), "bid": (4, 50)}
"""Which events of a round of 50 belong to a table."""
_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1_000, 10, 5
_ACTIVE_PERSONS, _ACTIVE_AUCTIONS, _LEAD = 1_000, 100, 10
_HOT_EVERY, _HOT_AUCTIONS, _HOT_PERSONS = 100, 2, 4
_CHANNELS = 10_000
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_FIRST_NAMES = ["peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "deiter", "walter"]
_LAST_NAMES = ["shultz", "abrams", "spencer", "white", "bartels", "walton", "smith", "jones", "noris"]
_CITIES = [
    "phoenix", "los angeles", "san francisco", "boise", "portland", "bend", "redmond", "seattle", "kent", "cheyenne",
]  # fmt: skip
_STATES = ["az", "ca", "id", "or", "wa", "wy"]


@dataclass(frozen=True)
class Recipe:
    """The options of `FROM nexmark`; `rate` is events a second."""

    table: str = "bid"
    events: int = 1_000_000
    rate: int = 10_000
    out_of_order_group_size: int = 1
    seed: int = 7
    start: str = "2015-07-15 00:00:00"
    generators: int = 1

    @property
    def slices(self) -> int:
        """How many slices the stream has."""
        return -(-self.events // SLICE_EVENTS)

    def micros(self, numbers: Numbers) -> Numbers:
        """The times of events: whole milliseconds, so that many have the same."""
        milliseconds = numbers * (1_000 * self.generators) // self.rate
        return start_micros(self.start) + milliseconds * 1_000

    def event_numbers(self, places: Numbers) -> Numbers:
        """The numbers of the events that are sent at these places."""
        size = self.out_of_order_group_size
        return places - places % size + places * SHUFFLE % size


def recipe(stream: Stream) -> Recipe:
    """The checked options of a stream."""
    plan = read_recipe(stream, Recipe)
    check_choice("table", plan.table, TABLES)
    check_positive(plan, "events", "rate", "out_of_order_group_size", "generators")
    if plan.out_of_order_group_size % SHUFFLE == 0:
        raise RequestError(
            f'option "out_of_order_group_size" does not take "{plan.out_of_order_group_size}"',
            hint=f"It takes a number that is no multiple of {SHUFFLE}.",
        )
    start_micros(plan.start)
    return plan


def generate(stream: Stream, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """The rows of slice `number`, in order of arrival, with their arrival in `__arrived`."""
    plan = recipe(stream)
    places = np.arange(number * SLICE_EVENTS, min(plan.events, (number + 1) * SLICE_EVENTS), dtype=np.int64)
    numbers = plan.event_numbers(places)
    first, past = _PLACES[plan.table]
    mine = (numbers % _ROUND >= first) & (numbers % _ROUND < past)
    events = Events(plan, numbers[mine])
    columns = [_column(stream.name, events, field) for field in schema]
    arrived = pa.array(plan.micros(places[mine]))
    return pa.RecordBatch.from_arrays([*columns, arrived], names=[*schema.names, ARRIVED])


@dataclass(frozen=True)
class Events:
    """Events of one table, by their numbers; persons and auctions are counted from 0 on."""

    plan: Recipe
    numbers: Numbers

    @cached_property
    def draws(self) -> Draws:
        """Random numbers for them."""
        return Draws(self.plan.seed, self.numbers)

    @cached_property
    def last_person(self) -> Numbers:
        """The newest person at the time of an event."""
        return self.numbers // _ROUND

    @cached_property
    def last_auction(self) -> Numbers:
        """The newest auction at the time of an event; -1 before the first."""
        return self.numbers // _ROUND * _AUCTIONS + np.clip(self.numbers % _ROUND - _PERSONS, -1, _AUCTIONS - 1)

    def hot(self, what: str, one_in: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether a popular one is taken: in all cases but one in so many."""
        return self.draws.below(f"hot {what}", one_in) > 0

    def any_person(self, what: str) -> Numbers:
        """One of those who joined last, or who will join soon."""
        people = self.last_person + 1
        active = np.minimum(people, _ACTIVE_PERSONS)
        return people - active + self.draws.below(what, active + _LEAD)

    def price(self, what: str) -> Numbers:
        """A price in cents; its logarithm is uniform."""
        return np.round(10 ** (6 * self.draws.unit(what)) * 100).astype(np.int64)

    def text(self, what: str, longest: int) -> pa.Array:
        """Words of letters and blanks."""
        lengths = 3 + self.draws.below(f"{what} length", longest - 3)
        return pc.ascii_trim_whitespace(self.draws.text(what, lengths, mark=" "))

    def extra(self, size: int | Numbers, wanted: int) -> pa.Array:
        """What fills a row of a size up to a size that it has on average, give or take a fifth."""
        room = np.maximum(wanted - np.broadcast_to(size, self.numbers.shape), 0)
        spread = np.round(room * 0.2).astype(np.int64)
        return self.draws.text("extra", room - spread + self.draws.below("extra length", 2 * spread))

    def one_of(self, what: str, values: list[str]) -> pa.Array:
        """One of some words."""
        return pa.array(values).take(pa.array(self.draws.below(what, len(values))))


def _auction_of_bid(events: Events) -> Numbers:
    hot = events.last_auction // _HOT_EVERY * _HOT_EVERY
    oldest = np.maximum(events.last_auction - _ACTIVE_AUCTIONS, 0)
    cold = oldest + events.draws.below("auction", events.last_auction + _LEAD + 1 - oldest)
    return _FIRST_ID + np.where(events.hot("auction", _HOT_AUCTIONS), hot, cold)


def _person(events: Events, what: str, hot_offset: int) -> Numbers:
    hot = events.last_person // _HOT_EVERY * _HOT_EVERY + hot_offset
    return _FIRST_ID + np.where(events.hot(what, _HOT_PERSONS), hot, events.any_person(what))


def _channel_numbers(events: Events) -> Numbers:
    """Popular channels come first."""
    popular = events.draws.below("popular channel", len(_HOT_CHANNELS))
    other = len(_HOT_CHANNELS) + events.draws.below("channel", _CHANNELS)
    return np.where(events.hot("channel", 2), popular, other)


@lru_cache(maxsize=1)
def _channels() -> pa.Array:
    return pa.array([*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_CHANNELS))])


@lru_cache(maxsize=4)
def _urls(seed: int) -> pa.Array:
    """The address of every channel; nine in ten of those that are not popular say which it is."""
    draws = Draws(seed, np.arange(len(_HOT_CHANNELS) + _CHANNELS, dtype=np.int64))
    parts = [
        draws.text(f"url {part}", 3 + draws.below(f"url length {part}", 2), mark="_").to_pylist() for part in range(3)
    ]
    named = draws.below("url channel", 10) > 0
    named[: len(_HOT_CHANNELS)] = False
    return pa.array(
        "https://www.nexmark.com/" + "/".join(words) + "/item.htm?query=1" + ending
        for *words, ending in zip(*parts, _endings(named.tolist()), strict=True)
    )


def _endings(named: list[bool]) -> list[str]:
    first = len(_HOT_CHANNELS)
    return [f"&channel_id={channel_id(number - first)}" if each else "" for number, each in enumerate(named)]


def channel_id(number: int) -> int:
    """The number with its 32 bits turned around, without a sign.

    >>> channel_id(7568)
    163053568
    """
    turned = int(f"{number:032b}"[::-1], 2)
    return turned if turned < 2**31 else 2**32 - turned


def _expires(events: Events) -> Numbers:
    """About when so many further auctions will have been opened as are open at a time."""
    opened = events.plan.micros(events.numbers)
    ahead = events.plan.micros(events.numbers + _ACTIVE_AUCTIONS * _ROUND // _AUCTIONS)
    milliseconds = 1 + events.draws.below("expires", np.maximum(2 * (ahead - opened) // 1_000, 1))
    return opened + milliseconds * 1_000


def _reserve(events: Events) -> Numbers:
    return events.price("initial bid") + events.price("reserve")


def _auction_extra(events: Events) -> pa.Array:
    return events.extra(48 + _bytes(_value(events, "item_name"), _value(events, "description")), 500)


def _name(events: Events) -> pa.Array:
    first, last = events.one_of("first name", _FIRST_NAMES), events.one_of("last name", _LAST_NAMES)
    return pc.binary_join_element_wise(first, last, " ")


def _email(events: Events) -> pa.Array:
    address = pc.binary_join_element_wise(events.text("mailbox", 7), events.text("mail host", 5), "@")
    return pc.binary_join_element_wise(address, ".com", "")


def _credit_card(events: Events) -> pa.Array:
    fours = [f"{number:04d}" for number in range(10_000)]
    return pc.binary_join_element_wise(*(events.one_of(f"credit card {part}", fours) for part in range(4)), " ")


def _person_extra(events: Events) -> pa.Array:
    texts = ("name", "email_address", "credit_card", "city", "state")
    return events.extra(8 + _bytes(*(_value(events, name) for name in texts)), 200)


def _bytes(*texts: pa.Array) -> Numbers:
    return np.sum([pc.binary_length(text).to_numpy().astype(np.int64) for text in texts], axis=0)


def _date_time(events: Events) -> Numbers:
    return events.plan.micros(events.numbers)


Maker = Callable[[Events], Numbers | pa.Array]
_NUMBER, _TEXT = pa.int64(), pa.string()
COLUMNS: dict[str, dict[str, tuple[pa.DataType, Maker]]] = {
    "bid": {
        "auction": (_NUMBER, _auction_of_bid),
        "bidder": (_NUMBER, lambda events: _person(events, "bidder", 1)),
        "price": (_NUMBER, lambda events: events.price("price")),
        "channel": (_TEXT, lambda events: _channels().take(pa.array(_channel_numbers(events)))),
        "url": (_TEXT, lambda events: _urls(events.plan.seed).take(pa.array(_channel_numbers(events)))),
        "date_time": (TIMESTAMP, _date_time),
        "extra": (_TEXT, lambda events: events.extra(32, 100)),
    },
    "auction": {
        "id": (_NUMBER, lambda events: _FIRST_ID + events.last_auction),
        "item_name": (_TEXT, lambda events: events.text("item name", 20)),
        "description": (_TEXT, lambda events: events.text("description", 100)),
        "initial_bid": (_NUMBER, lambda events: events.price("initial bid")),
        "reserve": (_NUMBER, _reserve),
        "date_time": (TIMESTAMP, _date_time),
        "expires": (TIMESTAMP, _expires),
        "seller": (_NUMBER, lambda events: _person(events, "seller", 0)),
        "category": (_NUMBER, lambda events: _FIRST_CATEGORY + events.draws.below("category", _CATEGORIES)),
        "extra": (_TEXT, _auction_extra),
    },
    "person": {
        "id": (_NUMBER, lambda events: _FIRST_ID + events.last_person),
        "name": (_TEXT, _name),
        "email_address": (_TEXT, _email),
        "credit_card": (_TEXT, _credit_card),
        "city": (_TEXT, lambda events: events.one_of("city", _CITIES)),
        "state": (_TEXT, lambda events: events.one_of("state", _STATES)),
        "date_time": (TIMESTAMP, _date_time),
        "extra": (_TEXT, _person_extra),
    },
}
"""The columns of every table: their types, and how they are made."""


def _value(events: Events, name: str) -> pa.Array:
    made = COLUMNS[events.plan.table][name][1](events)
    return made if isinstance(made, pa.Array) else pa.array(made)


def _column(stream: str, events: Events, field: pa.Field) -> pa.Array:
    """A column as the stream declares it; whole numbers may be of any size that holds them."""
    columns = COLUMNS[events.plan.table]
    if field.name not in columns:
        raise RequestError(
            f'stream "{stream}" declares a column "{field.name}", which the nexmark table "{events.plan.table}" lacks',
            hint=f"Its columns are {', '.join(columns)}.",
        )
    kind = columns[field.name][0]
    if field.type != kind and not (pa.types.is_integer(kind) and pa.types.is_integer(field.type)):
        raise RequestError(
            f'stream "{stream}" declares the column "{field.name}" as {field.type}, and nexmark makes it {kind}',
            hint="Declare numbers as BIGINT, texts as STRING and times as TIMESTAMP.",
        )
    return _value(events, field.name).cast(field.type)
