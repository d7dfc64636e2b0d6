"""Which connectors are Millrace's and which are Spark's own: every other format, and streaming DataFrames.

Rules:
- A format that is not Millrace's goes to Spark as it is, with all its options. Only Spark knows whether it exists.
- The other hosts refuse it before they read anything.
"""

from __future__ import annotations

from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.sink_index import PYTHON_SINK, has_writer, writer_formats
from millrace.errors import RequestError, did_you_mean, listed
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.source_index import has_source, source_formats

ITERABLE = "iterable"
"""The connector of a stream that is fed from Python."""
DATAFRAME = "dataframe"
"""The connector of a stream whose rows come from a streaming DataFrame, which is given beside the network."""
GENERATED = ("generate", "nexmark")
"""The connectors whose rows are made instead of read."""
SOURCES = (*FORMATS, *GENERATED)
"""The connectors that read or make rows on every host."""
PLAIN_SINKS = ("memory", "console")
"""The sinks that keep or print results in this process."""


def is_generated(connector: Connector) -> bool:
    """True if a connector makes its rows.

    >>> is_generated(Connector("nexmark")), is_generated(Connector("csv"))
    (True, False)
    """
    return connector.format in GENERATED


def is_native(connector: Connector) -> bool:
    """True if Spark alone reads a stream.

    >>> is_native(Connector("rate")), is_native(Connector("kafka")), is_native(Connector("iterable"))
    (True, False, False)
    """
    return connector.format not in (*SOURCES, ITERABLE) and not has_source(connector.format, connector.options)


def known_sources() -> tuple[str, ...]:
    """The formats that every host reads, those of installed packages among them."""
    return (*SOURCES, *sorted(source_formats()))


def is_native_sink(sink: Sink) -> bool:
    """True if Spark alone writes to a sink.

    >>> is_native_sink(Sink("s", Connector("orc"))), is_native_sink(Sink("s", Connector("memory")))
    (True, False)
    """
    return sink.connector.format not in (*FORMATS, *PLAIN_SINKS) and not has_writer(sink.connector)


def refuse_source(stream: Stream) -> RequestError:
    """The error of a host other than Spark for a stream that it cannot read."""
    format, known = stream.connector.format, known_sources()
    if format == ITERABLE:
        return RequestError(
            f'stream "{stream.name}" takes its rows from Python, and was given none',
            hint=f"Run the network from Python, or read the stream from another source: {listed(known_sources())}.",
        )
    return RequestError(
        f'stream "{stream.name}" comes from "{format}", which only Spark can read',
        hint=f"{did_you_mean(format, known)}Run it on Spark, or read it from another source: {listed(known)}.",
    )


def refuse_sink(sink: Sink) -> RequestError:
    """The error of a host other than Spark for a sink that it cannot write to."""
    format, known = sink.connector.format, (*FORMATS, PYTHON_SINK, *sorted(writer_formats()), *PLAIN_SINKS)
    return RequestError(
        f'sink "{sink.name}" goes to "{format}", which only Spark can write',
        hint=f"{did_you_mean(format, known)}Run it on Spark, or choose another format: {listed(known)}.",
    )
