from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from millrace.hosts.spark.session.shipped_code import PACKAGE, ship, user_code, zipped
from millrace.language import parse_network
from millrace.plan.physical.stages import physical


@pytest.fixture
def own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module and a package of a user's, imported as a script's classes are; of the package not all."""
    (tmp_path / "shipped_module.py").write_text("import shipped_package.inner\n")
    package = tmp_path / "shipped_package"
    package.mkdir()
    for name in ("__init__", "inner", "later"):
        (package / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("shipped_module")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("shipped_")]:
        del sys.modules[name]


def names(archive: Path) -> set[str]:
    with ZipFile(archive) as opened:
        return set(opened.namelist())


@pytest.mark.slow
def test_modules_of_the_user_are_found_and_installed_ones_are_not(own_code: Path) -> None:
    found = user_code()
    assert {own_code / "shipped_module.py", own_code / "shipped_package"} <= set(found)
    assert not [path for path in found if path.is_relative_to(PACKAGE) or "site-packages" in path.parts]


def test_of_a_package_all_files_are_sent(own_code: Path, tmp_path: Path) -> None:
    archive = zipped([own_code / "shipped_module.py", own_code / "shipped_package"], tmp_path / "all.zip")
    modules = ("shipped_module", *(f"shipped_package/{name}" for name in ("__init__", "inner", "later")))
    assert names(archive) == {f"{each}.{kind}" for each in modules for kind in ("py", "pyc")}


def test_a_file_that_is_no_python_is_sent_as_it_is(own_code: Path, tmp_path: Path) -> None:
    (own_code / "shipped_package" / "template.py").write_text("def {{ name }}():\n")
    archive = zipped([own_code / "shipped_package"], tmp_path / "all.zip")
    assert {each for each in names(archive) if "template" in each} == {"shipped_package/template.py"}


@pytest.mark.slow
def test_python_can_import_this_package_from_what_is_sent(tmp_path: Path) -> None:
    archive = zipped([PACKAGE], tmp_path / "millrace.zip")
    told = "import millrace.hosts.spark.stage.stage as stage; print(stage.__file__)"
    ran = subprocess.run([sys.executable, "-c", told], env={"PYTHONPATH": str(archive)}, capture_output=True, text=True)
    assert ran.stdout.strip() == f"{archive}/millrace/hosts/spark/stage/stage.pyc", ran.stderr


def test_a_worker_of_another_python_takes_the_module(own_code: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("millrace.hosts.spark.session.shipped_code.MAGIC_NUMBER", b"1\x00\r\n")
    archive = zipped([own_code / "shipped_package"], tmp_path / "all.zip")
    told = "import shipped_package.inner as inner; print(inner.__file__)"
    ran = subprocess.run([sys.executable, "-c", told], env={"PYTHONPATH": str(archive)}, capture_output=True, text=True)
    assert ran.stdout.strip() == f"{archive}/shipped_package/inner.py", ran.stderr


def session(master: str, sent: list[str], application: str) -> Any:
    context = SimpleNamespace(master=master, applicationId=application, addPyFile=sent.append)
    return SimpleNamespace(sparkContext=context)


def test_on_one_machine_nothing_is_sent(own_code: Path) -> None:
    sent: list[str] = []
    ship(session("local[2]", sent, "one"))
    assert sent == []


@pytest.mark.slow
def test_a_cluster_is_sent_what_is_new_and_nothing_twice(own_code: Path, tmp_path: Path) -> None:
    sent: list[str] = []
    cluster = session("spark://host:7077", sent, str(tmp_path))
    ship(cluster)
    assert {"millrace/__init__.py", "shipped_module.py"} <= names(Path(sent[0]))
    ship(cluster)
    assert len(sent) == 1
    (own_code / "shipped_more.py").write_text("")
    __import__("shipped_more")
    ship(cluster)
    assert names(Path(sent[1])) == {"shipped_more.py", "shipped_more.pyc"}
    assert Path(sent[0]).name != Path(sent[1]).name


@pytest.mark.slow
def test_a_cluster_is_sent_the_functions_that_a_plan_calls(own_code: Path, tmp_path: Path) -> None:
    (own_code / "shipped_prices.py").write_text("def price(amount):\n    return amount\n")
    plan = physical(
        parse_network(
            "CREATE STREAM s (x DOUBLE) LATENT TIMESTAMP FROM csv OPTIONS (path 's.csv');"
            "CREATE FUNCTION price(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'shipped_prices:price';"
            "SELECT price(x) AS p FROM s;"
        )
    )
    sent: list[str] = []
    ship(session("spark://host:7077", sent, f"{tmp_path}/functions"), plan)
    assert "shipped_prices.py" in names(Path(sent[0]))
