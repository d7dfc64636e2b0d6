"""A registry of Avro schemas that answers over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def registry(schemas: Mapping[int, Any], login: str | None = None) -> Iterator[str]:
    """The address of a registry with these schemas by number; with `login`, it refuses any other."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = schemas.get(int(self.path.removeprefix("/schemas/ids/")))
            refused = login and self.headers.get("Authorization") not in (None, login)
            self.send_response(401 if refused else 200 if known else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": json.dumps(known)}).encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
