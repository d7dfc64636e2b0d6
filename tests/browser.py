"""A headless Chromium for the tests of the live page, shared by the tests of a process.

It is Debian's `chromium`, installed by apt where this user may install packages, and driven by Playwright. Where there
is none, tests are skipped, and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def _program() -> str | None:
    return next((found for name in _PROGRAMS if (found := shutil.which(name))), None)


def _installed() -> str:
    """The path of a browser; installs one where that is allowed."""
    if (found := _program()) is not None:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("no Chromium; runs where it is installed, or as root on Debian, which installs it")
    done = subprocess.run(
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium"], capture_output=True, text=True, check=False
    )
    if (found := _program()) is None:
        pytest.skip(f"no Chromium: {done.stderr.strip()[-200:]}; runs where it is installed, or apt-get can install it")
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that runs, of Playwright's sync API."""
    api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    path = _installed()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
