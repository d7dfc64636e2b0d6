"""Errors at the line of the user's Python that caused them, without the lines of this package.

Rules:
- Only errors that are raised on purpose are shortened; what is unexpected keeps its whole traceback.
- A method of ours that calls another one is no user: the error is told where it leaves this package.
- `debug()` shows everything.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

from millrace.errors import MillraceError

_PACKAGE = str(Path(__file__).parent)
_debugging = False

T = TypeVar("T")


def debug(on: bool = True) -> None:
    """Show the whole traceback of errors, also where it leads through this package; `debug(False)` hides it again."""
    global _debugging
    _debugging = on


def at_caller(kind: type[T]) -> type[T]:
    """A class whose public methods raise errors that name the line and the argument of their caller."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, FunctionType) and (not name.startswith("_") or name == "__init__"):
            setattr(kind, name, _at_caller(member))
    return kind


def _at_caller(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        # Notebooks leave out such a frame.
        __tracebackhide__ = True
        try:
            return method(*given, **named)
        except MillraceError as error:
            caller = sys._getframe(1)
            if _debugging or _is_ours(caller.f_code.co_filename):
                raise
            _note(error, caller, method, given, named)
            raise error.with_traceback(None) from None

    return call


def _note(error: MillraceError, caller: FrameType, method: Callable[..., Any], given: Any, named: Any) -> None:
    """Say once where the error comes from: a doctest would take it for the message."""
    file, line = caller.f_code.co_filename, caller.f_lineno
    if file.startswith("<doctest") or getattr(error, "__notes__", None):
        return
    text = linecache.getline(file, line).strip()
    argument = _argument(error, method, given, named)
    which = f', argument "{argument}" of {method.__name__}' if argument else ""
    error.add_note(f"in {Path(file).name}, line {line}{which}" + (f": {text}" if text else ""))


def _argument(error: MillraceError, method: Callable[..., Any], given: Any, named: Any) -> str:
    """The argument whose text holds what the error is about; nothing if that cannot be told."""
    try:
        arguments = inspect.signature(method).bind(*given, **named).arguments
    except TypeError:
        return ""
    flat = {name: value for name, value in arguments.items() if name != "self"}
    for name, value in list(flat.items()):
        if isinstance(value, dict) and name not in named:
            flat |= flat.pop(name)
    about = [error.place.text] if error.place is not None and error.place.text else []
    about += re.findall(r'"([^"]+)"', error.fact)
    texts = {name: _text(value) for name, value in flat.items()}
    named_in_fact = [name for name in texts if re.match(rf"{re.escape(name)}\b", error.fact)]
    found = (name for each in about for name, text in texts.items() if each in text)
    return next(iter(named_in_fact), "") or next(found, "")


def _text(value: object) -> str:
    """The text of an argument, or of the texts in it."""
    if isinstance(value, str):
        return value
    return "\n".join(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ""


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE)


def _shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error that nobody has caught, without the lines of this package."""
    if _debugging or not isinstance(error, MillraceError):
        sys.__excepthook__(kind, error, trace)
        return
    told = traceback.TracebackException(kind, error, trace)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if not _is_ours(frame.filename)])
    print("".join(told.format()), end="", file=sys.stderr)  # noqa: T201


def hide_own_lines() -> None:
    """Print errors that nobody catches without the lines of this package, unless the program has a hook of its own."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _shown
