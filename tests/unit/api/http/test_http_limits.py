"""What connections and requests may take, and that the run beside the server goes on."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

import millrace as mr
from millrace.api.http import http_limits
from millrace.api.http.server import Server
from millrace.dashboard import sampler
from tests.e2e.commands import wait_for
from tests.unit.api.pushed_run import pushed_run


@pytest.fixture
def ticks() -> mr.Pushed:
    return mr.Pushed()


@pytest.fixture
def server(ticks: mr.Pushed) -> Iterator[Server]:
    network = mr.Network()
    stream = network.stream(
        "ticks", "symbol STRING, price DOUBLE, ts TIMESTAMP", time="ts", update_key="symbol", source=ticks
    )
    network.query("prices", stream.select("symbol", "price", "ts"))
    handle = network.run(on="local", background=True)
    try:
        yield handle.serve()
    finally:
        handle.stop()


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=300)


def answered(server: Server, method: str, path: str, **headers: str) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found[0], json.loads(found[1]) if found[1] else None


def sent(server: Server, request: bytes) -> bytes:
    """All that the server says to some bytes until it closes the connection."""
    with connected(server) as connection:
        connection.sendall(request)
        found = b""
        while more := connection.recv(65_536):
            found += more
        return found


def test_one_connection_too_many_is_turned_away_and_another_is_answered_when_one_has_ended(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits, "CONNECTIONS", 2)
    with connected(server), connected(server):
        # Those before it are accepted in their order, but counted a moment later.
        wait_for(lambda: answered(server, "GET", "/queries")[0] == 503)
    # Both have to be counted out: else the next one is too many until its own answer has left.
    wait_for(lambda: answered(server, "GET", "/queries")[0] == 200)


def test_connections_take_an_eighth_of_the_files_that_the_process_may_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (128, 4_096))
    assert http_limits.most_connections() == 16
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1_000_000, 1_000_000))
    assert http_limits.most_connections() == http_limits.CONNECTIONS


def test_an_idle_connection_ends(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "SECONDS", 0.1)
    assert sent(server, b"") == b""


def test_a_request_that_comes_a_byte_at_a_time_has_no_more_time_than_another(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits, "SECONDS", 0.2)
    with connected(server) as connection:
        connection.settimeout(0.02)
        for _ in range(1_000):  # For twenty seconds, if it may.
            try:
                connection.send(b"x")
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("the connection is still open")


def test_a_body_that_does_not_come_ends_the_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "SECONDS", 0.1)
    head = f"POST /page/change HTTP/1.1\r\nHost: localhost:1\r\nAuthorization: Bearer {server.access.token}\r\n"
    said = sent(server, f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n".encode())
    assert said == b""


def test_a_page_that_reads_nothing_is_dropped_when_little_is_unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "EVERY", 0.005)
    monkeypatch.setattr(http_limits, "SECONDS", 0.3)
    with pushed_run() as handle, socket.socket() as stalled:
        server = handle.serve()
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        stalled.connect(("127.0.0.1", server.port))
        stalled.sendall(b"GET /page/events HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
        wait_for(lambda: server.followers)
        wait_for(lambda: not server.followers)
        unsent = 0
        while more := stalled.recv(65_536):
            unsent += len(more)
        # The system adds to the buffer what it needs itself, and the reader has one of its own.
        assert unsent < 8 * http_limits.UNSENT_BYTES


def test_a_request_that_is_too_long_is_refused(server: Server) -> None:
    header = b"X: " + b"x" * 1_000 + b"\r\n"
    answer = sent(server, b"GET /queries HTTP/1.1\r\nHost: localhost:1\r\n" + header * 30)
    assert answer.startswith(b"HTTP/1.1 431 ") and b"at most 16384 bytes" in answer


@pytest.mark.parametrize("line", ["GET http://[ HTTP/1.1", "GET /latest/%ff%00 HTTP/1.1", "\x00 / HTTP/1.1"])
def test_what_is_no_request_is_refused_and_nothing_is_printed(
    line: str, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = sent(server, f"{line}\r\nHost: localhost:1\r\nConnection: close\r\n\r\n".encode())
    status, body = int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]
    assert status in (400, 404, 501) and set(json.loads(body)) == {"error", "hint"}
    assert capfd.readouterr() == ("", "")


def test_a_get_has_no_effect(server: Server, ticks: mr.Pushed, monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed, of = list[bool](), server.reader.of
    monkeypatch.setattr(
        server.reader, "of", lambda query, *, refresh: (refreshed.append(refresh), of(query, refresh=refresh))[1]
    )
    assert answered(server, "GET", "/latest/prices")[0] == 200
    status, said = answered(server, "GET", "/latest/prices?refresh=true")
    assert (status, said["hint"]) == (405, "Use POST /refresh/prices.")
    assert answered(server, "GET", "/refresh/prices")[0] == 405
    assert answered(server, "POST", "/latest/prices")[0] == 405
    ticks.push({"symbol": "A", "price": 7.0, "ts": "1970-01-01 00:00:01"})
    assert answered(server, "POST", "/refresh/prices?symbol=A")[1]["price"] == 7.0
    assert refreshed == [False, True]


def test_pages_of_other_sites_are_refused(server: Server) -> None:
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        assert answered(server, "GET", "/queries", Origin=origin)[0] == 403
        assert answered(server, "POST", "/refresh/prices", Origin=origin)[0] == 403
    assert answered(server, "POST", "/refresh/prices", Sec_Fetch_Site="cross-site")[0] == 403
    assert answered(server, "POST", "/refresh/prices", Origin=server.url)[0] == 200


def test_names_that_another_site_gave_this_machine_are_refused(server: Server) -> None:
    for host in (f"evil.example:{server.port}", "localhost.evil.example:80", ""):
        assert answered(server, "GET", "/queries", Host=host)[0] == 400
    assert answered(server, "GET", "/queries", Host=f"localhost:{server.port}")[0] == 200
