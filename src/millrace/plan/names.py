"""Names made from content: equal parts of several queries have one name, and saved state finds its operator again."""

from __future__ import annotations

import hashlib


def content_name(label: str, content: object) -> str:
    """A label and enough of a hash of the content's text to tell the parts of any network apart.

    >>> content_name("filter", ("x", 1)) == content_name("filter", ("x", 1))
    True
    """
    return f"{label.replace(' ', '_')}#{hashlib.sha256(repr(content).encode()).hexdigest()[:12]}"
