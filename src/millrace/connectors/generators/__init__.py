"""Streams whose rows are made instead of read, the same for the same options on every host.

- `random_rows` is `FROM generate`: Poisson, evenly spaced or bursty arrivals with lag, disorder and a silence.
- `nexmark` is `FROM nexmark`: the bids, auctions and persons of the benchmark.
- `generator_options` reads the options of both.

Both have `options_of(stream)` and `generate(stream, schema, number)`, which makes one slice.
`generated_input` calls them: a stream's slices as an input.
"""
