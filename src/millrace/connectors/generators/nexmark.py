"""The three streams of Nexmark: bids, auctions and persons of an auction house, by the rules of its generator.

Of 50 events one is a person, three are auctions and 46 are bids; `events` counts them all, and a stream holds those of
its own table. A row depends on the seed and its event's number only. Within a group of `out_of_order_group_size`
events their order is a fixed permutation. A bid or an auction may name a person or an auction that is yet to come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.generators.generator_options import check_choice, check_positive, parse_options, start_micros
from millrace.errors import RequestError, did_you_mean, listed
from millrace.kernel.elements import ARRIVED, TIMESTAMP
from millrace.plan.nodes.endpoints import Stream

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

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
_STEP = np.uint64(0x9E3779B97F4A7C15)
_LETTERS = 26
_MARKS = 13
"""One character in so many is a mark, where there are marks."""


@dataclass(frozen=True)
class NexmarkOptions:
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


def options_of(stream: Stream) -> NexmarkOptions:
    """The checked options of a stream."""
    options = parse_options(stream, NexmarkOptions)
    check_choice("table", options.table, TABLES)
    check_positive(options, "events", "rate", "out_of_order_group_size", "generators")
    if options.out_of_order_group_size % SHUFFLE == 0:
        raise RequestError(
            f'option "out_of_order_group_size" does not take "{options.out_of_order_group_size}"',
            hint=f"It takes a number that is no multiple of {SHUFFLE}.",
        )
    start_micros(options.start)
    return options


def generate(stream: Stream, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """The rows of slice `number`, in order of arrival, with their arrival in `__arrived`."""
    options = options_of(stream)
    places = np.arange(number * SLICE_EVENTS, min(options.events, (number + 1) * SLICE_EVENTS), dtype=np.int64)
    numbers = options.event_numbers(places)
    first, past = _PLACES[options.table]
    mine = (numbers % _ROUND >= first) & (numbers % _ROUND < past)
    events = Events(options, numbers[mine])
    columns = [_column(stream.name, events, field) for field in schema]
    arrived = pa.array(options.micros(places[mine]))
    return pa.RecordBatch.from_arrays([*columns, arrived], names=[*schema.names, ARRIVED])


@dataclass(frozen=True)
class Events:
    """Events of one table, by their numbers; persons and auctions are counted from 0 on."""

    options: NexmarkOptions
    numbers: Numbers

    @cached_property
    def draws(self) -> Draws:
        """Random numbers for them."""
        return Draws(self.options.seed, self.numbers)

    @cached_property
    def last_person(self) -> Numbers:
        """The newest person at the time of an event."""
        return self.numbers // _ROUND

    @cached_property
    def last_auction(self) -> Numbers:
        """The newest auction at the time of an event; -1 before the first."""
        return self.numbers // _ROUND * _AUCTIONS + np.clip(self.numbers % _ROUND - _PERSONS, -1, _AUCTIONS - 1)

    def hot(self, what: str, one_in: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """True where a popular one is chosen: in all cases but one in so many."""
        return self.draws.below(f"hot {what}", one_in) > 0

    def any_person(self, what: str) -> Numbers:
        """One of the persons that joined last, or will join soon."""
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
        """Text that fills a row of some size up to a wanted average size, within a fifth."""
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
    """The address of every channel; nine in ten of the unpopular ones hold its number."""
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
    """The number with its 32 bits reversed, without a sign.

    >>> channel_id(7568)
    163053568
    """
    turned = int(f"{number:032b}"[::-1], 2)
    return turned if turned < 2**31 else 2**32 - turned


def _expires(events: Events) -> Numbers:
    """Times about which as many further auctions will have been opened as are open at a time."""
    opened = events.options.micros(events.numbers)
    ahead = events.options.micros(events.numbers + _ACTIVE_AUCTIONS * _ROUND // _AUCTIONS)
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
    return events.options.micros(events.numbers)


Maker = Callable[[Events], Numbers | pa.Array]
_NUMBER, _TEXT = pa.int64(), pa.string()
COLUMNS: dict[str, dict[str, tuple[pa.DataType, Maker]]] = {
    "bid": {
        "auction": (_NUMBER, _auction_of_bid),
        "bidder": (_NUMBER, lambda events: _person(events, "bidder", 1)),
        "price": (_NUMBER, lambda events: events.price("price")),
        "channel": (_TEXT, lambda events: _channels().take(pa.array(_channel_numbers(events)))),
        "url": (_TEXT, lambda events: _urls(events.options.seed).take(pa.array(_channel_numbers(events)))),
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
    made = COLUMNS[events.options.table][name][1](events)
    return made if isinstance(made, pa.Array) else pa.array(made)


def _column(stream: str, events: Events, field: pa.Field) -> pa.Array:
    """A column as the stream declares it; whole numbers may be of any size that holds them."""
    columns = COLUMNS[events.options.table]
    if field.name not in columns:
        table = events.options.table
        raise RequestError(
            f'stream "{stream}" declares "{field.name}", which is no column of the nexmark table "{table}"',
            hint=f"{did_you_mean(field.name, columns)}Its columns are {listed(columns)}.",
        )
    kind = columns[field.name][0]
    if field.type != kind and not (pa.types.is_integer(kind) and pa.types.is_integer(field.type)):
        raise RequestError(
            f'stream "{stream}" declares the column "{field.name}" as {field.type}, and nexmark makes it {kind}',
            hint="Declare numbers as BIGINT, texts as STRING and times as TIMESTAMP.",
        )
    return _value(events, field.name).cast(field.type)


@dataclass(frozen=True)
class Draws:
    """Random draws of a seed, one for each of some numbers; a draw depends on seed, purpose and number only.

    A draw is a hash of its number (the finalizer of SplitMix64): no state, no order, whole columns at a time.

    >>> Draws(7, np.arange(5)).below("dice", 6).tolist() == Draws(7, np.arange(9)).below("dice", 6)[:5].tolist()
    True
    """

    seed: int
    numbers: Numbers

    def unit(self, purpose: str) -> npt.NDArray[np.float64]:
        """A fraction in [0, 1) each."""
        # 53 bits are what a fraction has room for.
        return (self._bits(purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, purpose: str, limit: int | Numbers) -> Numbers:
        """A whole number in [0, limit) each."""
        return (self.unit(purpose) * limit).astype(np.int64)

    def text(self, purpose: str, lengths: Numbers, mark: str | None = None) -> pa.Array:
        """Letters from a to z, so many each; with a mark, one character in thirteen is that."""
        width = int(lengths.max(initial=0))
        pieces = self._pieces(purpose, width).astype(np.uint32)
        # A piece is scaled to a letter and, beside it, to whether it is a mark.
        drawn = (pieces * np.uint32(_LETTERS * _MARKS)) >> np.uint32(16)
        characters = (drawn % _LETTERS + ord("a")).astype(np.uint8)
        if mark is not None:
            characters[drawn < _LETTERS] = ord(mark)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        kept = characters[np.arange(width) < lengths[:, None]]
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(kept)]
        return pa.Array.from_buffers(pa.string(), len(lengths), buffers)

    def _pieces(self, purpose: str, width: int) -> npt.NDArray[np.uint16]:
        """So many draws of 16 bits each: four to a hash."""
        hashes = -(-width // 4)
        steps = np.arange(1, hashes + 1, dtype=np.uint64) * _STEP
        bits = _mixed(self._bits(purpose)[:, None] + steps)
        return bits.astype("<u8").view("<u2").reshape(len(self.numbers), hashes * 4)[:, :width]

    def _bits(self, purpose: str) -> Bits:
        salt = blake2b(f"{self.seed}/{purpose}".encode(), digest_size=8).digest()
        start = np.uint64(int.from_bytes(salt, "little"))
        return _mixed(_mixed(self.numbers.astype(np.uint64) * _STEP + start))


def _mixed(bits: Bits) -> Bits:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
