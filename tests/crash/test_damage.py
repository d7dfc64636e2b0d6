"""A checkpoint with one damaged file is refused by the file's name, or the damage changes no answer."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tests.damage import by_hand, on_local
from tests.damage.__main__ import cases, cases_on_spark, table
from tests.damage.networks import NAMES, write_inputs

HOSTS = {"local": on_local, "by-hand": by_hand}
SAMPLE = ("windows", "band join", "update queue", "partitions")


@contextmanager
def no_pickles() -> Iterator[None]:
    """A block in which nothing can be unpickled."""

    def refuse(*given: Any, **named: Any) -> Any:
        raise AssertionError("something was unpickled")

    with ExitStack() as patched:
        for module in (pickle, cloudpickle):
            for name in ("loads", "load"):
                patched.enter_context(patch.object(module, name, refuse))
        yield


@pytest.fixture(scope="module", params=HOSTS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A host, and a folder with input for its networks."""
    folder = tmp_path_factory.mktemp(request.param)
    write_inputs(folder / "inputs")
    return HOSTS[request.param], folder


@pytest.mark.slow
def test_damage_is_named_or_changes_nothing_and_no_pickle_is_read(site: tuple[Any, Path]) -> None:
    host, folder = site
    with no_pickles():
        sites = [host.prepared(folder / f"site-{number}", name) for number, name in enumerate(SAMPLE)]
    found = [
        host.tried(each, folder / f"{at}-{seed}", random.Random(seed))
        for at, each in enumerate(sites)
        for seed in range(6)
    ]
    assert [case for case in found if case.outcome not in ("detected", "harmless")] == []
    assert len([case for case in found if case.outcome == "detected"]) > len(found) // 3


@pytest.mark.slow
def test_only_the_states_of_a_users_aggregate_are_pickled(site: tuple[Any, Path]) -> None:
    host, folder = site
    with no_pickles(), pytest.raises(Exception, match="unpickled"):
        host.prepared(folder / "users", "user's states")


@pytest.mark.long
@pytest.mark.parametrize("host", HOSTS)
def test_no_damage_in_two_thousand_is_silently_wrong_or_ends_the_process(host: str, tmp_path: Path) -> None:
    found = list(cases(host, 2_000, 18, tmp_path))
    assert {case.network for case in found} == set(NAMES)
    assert [case for case in found if case.outcome not in ("detected", "harmless")] == [], table(found)


@pytest.mark.long
@pytest.mark.spark
def test_damage_to_our_files_is_named_or_changes_nothing_on_spark(
    tmp_path: Path, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = list(cases_on_spark(spark_session, 24, 18, tmp_path, of_spark=False))
    assert [case for case in found if case.outcome not in ("detected", "harmless")] == [], table(found)
    assert any(case.outcome == "detected" for case in found)
