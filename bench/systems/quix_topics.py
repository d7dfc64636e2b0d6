"""A tumbling count from topic to topic with quixstreams, in a Python that has it: this file imports nothing of ours.

Messages are keyed by word and have their own times, so nothing has to be sent on. It reads `count` messages, or for
ever with 0, and says how many seconds, and of processor time, that took.
"""

from __future__ import annotations

import sys
import time

from quixstreams import Application


def main(servers: str, topic: str, output: str, folder: str, window: int, delay: int, count: int) -> None:
    """Count the words of a topic."""
    seen = 0

    def on_message(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            application.stop()

    application = Application(
        servers,
        consumer_group=f"quix-{output}",
        auto_offset_reset="earliest",
        state_dir=folder,
        commit_interval=1.0,
        loglevel="ERROR",
        on_message_processed=on_message,
    )
    words = application.topic(topic, key_deserializer="str")
    results = application.topic(output, key_serializer="str")
    frame = application.dataframe(words)
    frame = frame.tumbling_window(window, grace_ms=delay).count().final(closing_strategy="partition")
    frame.to_topic(results)
    began, used = time.perf_counter(), time.process_time()
    application.run()
    print(time.perf_counter() - began, time.process_time() - used, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], *map(int, sys.argv[5:]))  # type: ignore[arg-type]
