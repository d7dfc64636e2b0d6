"""The two files of a release, without an installation: `make release-check` tries them."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "release_check.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_check", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_wheel_and_the_sdist_hold_all_modules_and_a_lost_one_is_noticed(script: ModuleType, tmp_path: Path) -> None:
    wheel, sdist = script.build(tmp_path / "dist")
    script.check_files(wheel, sdist)
    less = tmp_path / wheel.name
    shutil.copy(wheel, less)
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(less, "w") as part:
        for name in whole.namelist():
            if name != "millrace/errors.py":
                part.writestr(name, whole.read(name))
    with pytest.raises(SystemExit, match="and no others"):
        script.check_files(less, sdist)


def test_a_command_that_fails_ends_the_check(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="it failed with 3"):
        script.run("sh", "-c", "exit 3", folder=tmp_path)
