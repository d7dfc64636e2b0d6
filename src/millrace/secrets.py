"""Secrets in options of streams and sinks: written as references, looked up where a connector is opened, never shown.

Rules:
- `'${env:NAME}'` stands for a variable of the environment, `'${file:/path}'` for what a file holds, without the end of
  its last line. Either may be a part of a value. Plans, checkpoints and texts hold the reference.
- An option whose name is that of a secret must be a reference, and so must the password in an address.
- Where a text is quoted in an error, what was written for such an option is hidden. What a reference stood for is
  hidden in all errors of this process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from millrace.errors import RequestError, hide

_REFERENCE = re.compile(r"\$\{(\w*)(:?)([^}]*)\}")
_KEYS = r"(?:api|access|account|private|secret)[_.-]?key"
_NAME = rf"(?:password|passwd|passphrase|secret|token|credentials?|jaas\.config|key[_.]pem|{_KEYS})"
_IS_NAME = re.compile(rf".*{_NAME}", re.IGNORECASE | re.DOTALL)
_IN_ADDRESS = re.compile(
    r"(://[^/\s:@'\"]*:(?=[^@/\s'\"]+@)|[?&;](?:password|passwd|token|secret)=)([^@/&;\s'\"]+)", re.IGNORECASE
)
_IN_STRING = re.compile(r"(?:^|\s)(?:password|passwd|sslpassword)\s*=\s*['\"]?(?!\$\{)[^\s'\"]", re.IGNORECASE)
"""The password in a connection string, `host=db password=x`."""
_QUOTED = r"""'(?:\\.|''|[^'\\])*'?|"(?:\\.|""|[^"\\])*"?"""
_WRITTEN = re.compile(rf"""({_NAME}[`"']?\s*=?\s*)({_QUOTED})""", re.IGNORECASE)
_BARE = re.compile(rf"""({_NAME}[`"']?\s*=?\s*)([^\s,()'"`=]+)""", re.IGNORECASE)
_OPTIONS = re.compile(rf"""\bOPTIONS\s*\((?:{_QUOTED}|[^)'"])*""", re.IGNORECASE)
HOW_TO_REFER = "Write a reference, which is looked up when the connector is opened: '${env:NAME}' or '${file:/path}'."


def plain_secret(name: str, value: str) -> str | None:
    """Why an option may not be written as it is; None if it may.

    >>> plain_secret("password", "hunter2")
    'the option "password" is a secret, and is written in plain'
    >>> plain_secret("password", "${env:PG_PASSWORD}") is plain_secret("user", "me") is None
    True
    """
    left = _REFERENCE.sub("", value)
    if _IS_NAME.fullmatch(name) and value and left == value:
        return f'the option "{name}" is a secret, and is written in plain'
    found = _IN_ADDRESS.search(left) or _IN_STRING.search(value)
    return f'the address in the option "{name}" has a secret in plain' if found else None


def has_reference(value: str) -> bool:
    """True if a value has a reference in it."""
    return _REFERENCE.search(value) is not None


def resolved(options: Mapping[str, str], owner: str) -> dict[str, str]:
    """Options with what their references stand for; refuses a reference to what is not there.

    >>> resolved({"path": "out"}, 'sink "o"')
    {'path': 'out'}
    """
    return {name: _resolved(name, value, owner) for name, value in options.items()}


def _resolved(name: str, value: str, owner: str) -> str:
    return _REFERENCE.sub(lambda found: _looked_up(found[1], found[3], f'the option "{name}" of {owner}'), value)


def _looked_up(kind: str, where: str, what: str) -> str:
    if kind == "env":
        found = os.environ.get(where)
        if found is None:
            raise RequestError(
                f'{what} names the variable "{where}", which the environment does not have',
                hint=f"Set {where} where Millrace runs.",
            )
    elif kind == "file":
        try:
            found = Path(where).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
            raise RequestError(
                f'{what} names the file "{where}", which cannot be read: {reason}',
                hint="Give the file to the user that runs Millrace, or name another.",
            ) from None
    else:
        raise RequestError(f'{what} has a reference that is neither env nor file: "{kind}"', hint=HOW_TO_REFER)
    hide(found)
    return found


def masked(text: str) -> str:
    """A text, as long as before, with stars for what is written for options that are secrets.

    >>> masked("OPTIONS (user 'me', password 'hunter2', token '${env:T}')")
    "OPTIONS (user 'me', password '*******', token '${env:T}')"
    """
    text = _OPTIONS.sub(lambda clause: _BARE.sub(_starred, clause[0]), text)
    return _IN_ADDRESS.sub(_starred, _WRITTEN.sub(_starred, text))


def _starred(found: re.Match[str]) -> str:
    value = found[2]
    if _REFERENCE.fullmatch(value.strip("'\"")):
        return found[0]
    return found[1] + re.sub(r"[^'\"\n]", "*", value)
