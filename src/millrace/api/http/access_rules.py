"""Who may ask an HTTP server beside a run, and for what.

Rules:
- A server listens on the loopback address, unless it is given another `host`; that needs a token.
- A request names the server by a name of its own: the address that it came in by, the host that was given, or on the
  loopback `localhost`. Else a page of another site could reach it under a name that it has made up.
- A page of another site may ask nothing: its browser says where it is from.
- On the loopback, reading needs no token, as every user of the machine may look. What changes a run needs the token of
  the run always. Elsewhere all but the files of the page needs it.
- A GET changes nothing. A change comes as JSON by POST, which no form of another page can send.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from millrace.errors import RequestError

LOOPBACK = "127.0.0.1"
_LEAST_TOKEN = 16
"""Characters: a shorter token can be guessed."""


class Refused(Exception):
    """A status, the fact and the hint."""


@dataclass(frozen=True)
class AccessRules:
    """The address that a server listens on, and the token of its run."""

    host: str = LOOPBACK
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @staticmethod
    def of(host: str | None, token: str | None) -> AccessRules:
        """What was asked for, or a refusal."""
        if token is not None and len(token) < _LEAST_TOKEN:
            raise RequestError(
                f"a token has at least {_LEAST_TOKEN} characters",
                hint="Make one with: python -c 'import secrets; print(secrets.token_urlsafe())'.",
            )
        given = {} if token is None else {"token": token}
        access = AccessRules(host or LOOPBACK, **given)
        if not access.is_local and token is None:
            raise RequestError(
                f'other machines can reach "{host}", so the server needs a token',
                hint="Give it in a file with --token-file, or as token= in Python.",
            )
        return access

    @property
    def is_local(self) -> bool:
        """True if only this machine can ask."""
        return self.host == "localhost" or _is_loopback(self.host)

    def check(self, headers: Mapping[str, str], came_in_by: str, port: int) -> None:
        """Refuse a request under another name, or of a page from elsewhere."""
        named, origin = headers.get("Host", ""), headers.get("Origin")
        if _without_port(named) not in self._names(came_in_by):
            raise RequestError(
                f'the request is for the host "{named}", which is not this server',
                hint=f"Ask it as {url_of(self.shown, port)}.",
            )
        if origin not in (None, f"http://{named}"):
            raise Refused(403, f'a page of "{origin}" may not ask this server', "Ask it from here.")
        if headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
            raise Refused(403, "a page of another site may not ask this server", "Ask it from here.")

    def check_token(self, headers: Mapping[str, str], *, changes: bool) -> None:
        """Refuse a request that needs the token and does not bring it."""
        if self.is_local and not changes:
            return
        kind, _, given = headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            what = "changes need" if self.is_local else "this server needs"
            raise Refused(401, f"{what} the token of the run", "Send it as Authorization: Bearer TOKEN.")

    @property
    def shown(self) -> str:
        """The name to ask it by."""
        return socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host

    def _names(self, came_in_by: str) -> set[str]:
        """The names that this server has, for a request that came in by one of its addresses."""
        names = {self.host, came_in_by.removeprefix("::ffff:")}
        if _is_loopback(came_in_by):
            names |= {LOOPBACK, "localhost"}
        if not self.is_local:
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        return names - {"0.0.0.0", "::"}


def url_of(name: str, port: int) -> str:
    """The address of a server.

    >>> url_of("127.0.0.1", 80), url_of("::1", 4040)
    ('http://127.0.0.1:80', 'http://[::1]:4040')
    """
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _without_port(host: str) -> str:
    """The name in a Host header. The port may be that of a tunnel.

    >>> _without_port("localhost:4040"), _without_port("[::1]:4040"), _without_port("Example")
    ('localhost', '::1', 'example')
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).strip("[]").lower()


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False
