"""Order-agnostic union."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.elements import Batch, Element
from millrace.kernel.operator import Operator


class Union(Operator):
    """Pass the rows of all inputs on as they come (004 section 5.4 and A.2.1).

    It never waits, so it also is the union of latent streams (000 section 5).
    State: none; the bound of each input is kept by its register. Punctuations: the least of all inputs.
    """

    label = "union"
    passes_rows = True
    senses_bounds = True

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        yield batch
