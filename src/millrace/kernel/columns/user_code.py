"""Classes and functions of the user's own, found by their place."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from millrace.errors import RequestError


def class_at(place: str, what: str) -> Any:
    """What stands at a place "package.module:Class"; `what` names it where nothing does.

    >>> class_at("fractions:Fraction", 'the class of aggregate "f"').__name__
    'Fraction'
    """
    return found_at(place, what, "'package.module:Class'")


def found_at(place: str, what: str, written: str) -> Any:
    """What stands at a place; `what` names it where nothing does, and `written` is how its place is written."""
    module, _, path = place.partition(":")
    # Importing runs a user's code, which may raise anything.
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:
        raise RequestError(
            f'{what} is not found at "{place}": {error}',
            hint=f"Write its place as {written}, and let the package be where Python finds it.",
        ) from error
    return found
