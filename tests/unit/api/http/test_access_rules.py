"""Who may ask the server beside a run: one test per rule of access_rules.py."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

import millrace as mr
from millrace.api.http.access_rules import AccessRules
from millrace.api.http.server import Server
from tests.unit.api.pushed_run import pushed_run

TOKEN = "a token that nobody guesses"
ADD = json.dumps({"sql": "ADD QUERY more AS SELECT k FROM s"})


@pytest.fixture
def handle() -> Iterator[mr.Handle]:
    with pushed_run() as handle:
        yield handle


@pytest.fixture
def server(handle: mr.Handle) -> Server:
    return handle.serve(token=TOKEN)


def answered(server: Server, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found[0], found[1]


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}


def test_a_server_listens_on_the_loopback_address_alone(handle: mr.Handle) -> None:
    server = handle.serve()
    assert server.url.startswith("http://127.0.0.1:")
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with pytest.raises(OSError):
            socket.create_connection((own, server.port), timeout=5).close()


def test_another_address_needs_a_token_and_the_token_must_be_long(handle: mr.Handle) -> None:
    with pytest.raises(mr.MillraceError, match="needs a token"):
        handle.serve(host="0.0.0.0")
    with pytest.raises(mr.MillraceError, match="at least 16 characters"):
        handle.serve(host="0.0.0.0", token="short")


def test_elsewhere_all_but_the_files_of_the_page_needs_the_token(handle: mr.Handle) -> None:
    server = handle.serve(host="0.0.0.0", token=TOKEN)
    for path in ("/queries", "/metrics", "/page/curves", "/page/text", "/page/events"):
        assert answered(server, "GET", path)[0] == 401, path
        assert answered(server, "GET", path, Authorization="Bearer another token of no use")[0] == 401, path
    assert answered(server, "GET", "/queries", **bearer())[0] == 200
    assert answered(server, "GET", "/")[0] == 200


def test_a_request_under_another_name_is_refused(server: Server) -> None:
    assert answered(server, "GET", "/queries", Host="attacker.example")[0] == 400
    assert answered(server, "GET", "/", Host=f"attacker.example:{server.port}")[0] == 400
    assert answered(server, "GET", "/queries", Host="localhost:1")[0] == 200


def test_a_page_of_another_site_is_refused_even_with_the_token(server: Server) -> None:
    for headers in ({"Origin": "http://attacker.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
        assert answered(server, "GET", "/page/curves", **headers)[0] == 403
        assert answered(server, "POST", "/page/change", ADD, **bearer(), **headers)[0] == 403
    own = f"http://127.0.0.1:{server.port}"
    assert answered(server, "GET", "/page/curves", Origin=own)[0] == 200


def test_a_page_on_another_port_of_this_machine_is_refused(server: Server) -> None:
    assert answered(server, "GET", "/page/curves", Origin="http://127.0.0.1:1")[0] == 403
    assert answered(server, "GET", "/page/curves", Sec_Fetch_Site="same-site")[0] == 403


def test_a_get_changes_nothing(server: Server, handle: mr.Handle) -> None:
    for path in ("/page/change", "/page/proposal", "/refresh/all"):
        status, said = answered(server, "GET", path, **bearer())
        assert (status, b"Use POST" in said) == (405, True), path
    assert list(handle.queries) == ["all"]


def test_a_change_needs_the_token_on_the_loopback_too(server: Server, handle: mr.Handle) -> None:
    json_alone = {"Content_Type": "application/json"}
    assert answered(server, "POST", "/page/change", ADD, **json_alone)[0] == 401
    assert answered(server, "POST", "/page/proposal", ADD, **bearer("another token of no use"))[0] == 401
    assert list(handle.queries) == ["all"]
    assert answered(server, "POST", "/page/change", ADD, **bearer())[0] == 200
    assert list(handle.queries) == ["all", "more"]


def test_a_change_is_json_which_no_form_can_send(server: Server, handle: mr.Handle) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert answered(server, "POST", "/page/change", ADD, **{**bearer(), "Content_Type": kind})[0] == 415
    for body in ("[1]", "[" * 10_000, '{"sql":' + "[" * 10_000):
        assert answered(server, "POST", "/page/change", body, **bearer())[0] == 400
    assert list(handle.queries) == ["all"]


def test_a_body_is_limited(server: Server) -> None:
    status, _ = answered(server, "POST", "/page/change", json.dumps({"sql": "x" * 20_000}), **bearer())
    assert status == 413
    for length in ("-1", "99999999999", "\xb2"):
        assert answered(server, "POST", "/page/change", ADD, **{**bearer(), "Content_Length": length})[0] == 413


def test_a_proposal_changes_nothing_and_says_what_would_change(server: Server, handle: mr.Handle) -> None:
    status, said = answered(server, "POST", "/page/proposal", ADD, **bearer())
    assert status == 200 and list(handle.queries) == ["all"]
    assert {each["name"]: each["became"] for each in json.loads(said)["difference"]["nodes"]}["more"] == "added"


def test_the_text_that_is_shown_has_no_secrets(server: Server, handle: mr.Handle) -> None:
    handle._changes.file += "\n-- CREATE SINK t TO jdbc OPTIONS (password 'hunter2')"
    status, text = answered(server, "GET", "/page/text")
    assert status == 200 and b"jdbc" in text and b"hunter2" not in text


def test_the_page_may_load_its_own_files_alone(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("GET", "/")
    policy = connection.getresponse().headers["Content-Security-Policy"]
    connection.close()
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy


def test_files_outside_the_page_are_not_served(server: Server) -> None:
    for path in ("/static/../page_files.py", "/static/%2e%2e/page_files.py", "/static//etc/passwd", "/static/"):
        assert answered(server, "GET", path)[0] == 404, path


def test_a_token_is_not_shown_by_accident() -> None:
    assert TOKEN not in repr(AccessRules.of(None, TOKEN))
