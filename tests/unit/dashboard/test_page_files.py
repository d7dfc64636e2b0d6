"""The files of the page: those of others are as they were fetched, and all are in the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from millrace.dashboard.page_files import FOLDER, page_files

ROOT = Path(__file__).parents[3]
VENDORED = {
    "dagre.min.js": "54a503e346f93ca0bb10abe7999587e037262935687aca45eb4e4b0f64bbb578",
    "dagre.LICENSE.txt": "6a349742a6cb219d5a2fc8d0844f6d89a6efc62e20c664450d884fc7ff2d6015",
    "uPlot.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""dagre 3.1.3 and uPlot 1.6.32, from the packages that their authors publish."""


def test_what_others_wrote_is_as_it_was_fetched_with_its_licence() -> None:
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in (FOLDER / "vendor").iterdir()}
    assert found == VENDORED


def test_the_page_names_only_files_that_it_has() -> None:
    files, page = page_files(), page_files()["index.html"].content.decode()
    named = [part.partition('"')[0] for part in page.split('"/static/')[1:]]
    assert named and [name for name in named if name not in files] == []


def test_the_page_asks_no_other_server() -> None:
    own = {name: each for name, each in page_files().items() if not name.startswith("vendor/")}
    known = ("http://www.w3.org/2000/svg",)
    texts = {name: each.content.decode() for name, each in own.items()}
    for address in known:
        texts = {name: text.replace(address, "") for name, text in texts.items()}
    assert [name for name, text in texts.items() if "http://" in text or "https://" in text] == []


@pytest.mark.slow
def test_the_wheel_holds_the_files_of_the_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"millrace/dashboard/static/{path}" for path in page_files()}
    assert expected <= names


@pytest.mark.slow
def test_the_types_of_the_page_are_right() -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("no tsc: runs where TypeScript is installed (npm install -g typescript)")
    done = subprocess.run(
        [compiler, "-p", str(ROOT / "tests" / "page_types")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
