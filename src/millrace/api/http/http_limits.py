"""What connections to an HTTP server may take, so that they never reach the run beside it.

Rules:
- Connections are few: at most `CONNECTIONS`, and an eighth of the files that this process may open. One more is
  answered with 503 and closed at once.
- A request has `SECONDS` to come whole and is at most `BYTES` long; an idle connection ends after as long.
- An answer that nobody takes for `SECONDS` ends its connection; of events the system holds back about `UNSENT_BYTES`.
- Nothing is printed, whatever comes: the terminal belongs to the run.
"""

from __future__ import annotations

import io
import json
import resource
import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from time import monotonic, sleep
from typing import Any

CONNECTIONS = 64
SECONDS = 10.0
BYTES = 16_384
UNSENT_BYTES = 65_536
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_BREATH = 0.1
"""Seconds until a connection is accepted again, where this process has no file left for it."""


class LimitedServer(ThreadingHTTPServer):
    """A thread per connection, for as many as are allowed."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._counting = Lock()
        self._open = 0

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection."""
        try:
            return super().get_request()
        except OSError:
            sleep(_BREATH)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin with a connection, or turn it away."""
        with self._counting:
            allowed = self._open < most_connections()
            self._open += allowed
        if allowed:
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.setblocking(False)
            request.send(_BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._counting:
                self._open -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing."""


def most_connections() -> int:
    """How many connections may be open at a time."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(CONNECTIONS, files // 8))


class LimitedHandler(BaseHTTPRequestHandler):
    """The requests of one connection, each within its time and length."""

    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        """Read through the limits."""
        super().setup()
        self.connection.settimeout(SECONDS)
        self._limited = _LimitedReader(self.connection)
        self.rfile = io.BufferedReader(self._limited, 1024)

    def handle_one_request(self) -> None:
        """Answer one request."""
        self._limited.begin()
        try:
            super().handle_one_request()
        except _TooLong:
            self.close_connection = True
            self.requestline = self.request_version = ""
            with suppress(OSError):
                self.send_error(431, f"a request has at most {BYTES} bytes")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that could not be read, as others are refused."""
        body = json.dumps({"error": message or self.responses[code][0].lower(), "hint": explain or ""}).encode() + b"\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


class _TooLong(Exception):
    """A request is longer than allowed."""


class _LimitedReader(io.RawIOBase):
    """What a connection sends, until the time or the length of a request is used up."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.begin()

    def begin(self) -> None:
        """Allow another request."""
        self._until = monotonic() + SECONDS
        self._left = BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - monotonic()
        if left <= 0:
            raise TimeoutError
        if self._left <= 0:
            raise _TooLong
        self._connection.settimeout(left)
        try:
            count = self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(SECONDS)
        self._left -= count
        return count
