"""What `millrace figures` writes and says, with a figure that takes no time."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path
from time import sleep

import pytest

from millrace.api.terminal import status_line
from millrace.errors import RequestError
from millrace.experiments.figures import command
from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Chart
from millrace.experiments.figures.experiment import PLACE, Figure, workers
from millrace.experiments.figures.generated_networks import ON_DEMAND, GeneratedStream, NetworkCase, selected_union
from millrace.hosts.virtual.clock import Costs

COSTS = Costs(row=50, punctuation=50, ets=10)


def tiny(least: float, *, reproduces: bool = True) -> Figure:
    """Two seconds of two streams; its claim is that a result takes at least so long."""

    def case(rate: float) -> NetworkCase:
        text = selected_union(GeneratedStream("a", rate, ON_DEMAND), GeneratedStream("b", 1, ON_DEMAND), 2.0)
        return NetworkCase(text, 2.0, COSTS)

    return Figure(
        "tiny",
        "no paper",
        "a latency",
        lambda: {("C", rate): case(rate) for rate in (10.0, 20.0)},
        {"rate": PLACE, "seconds": "latency"},
        [Chart("rate", "seconds", "latency")],
        lambda found: [_claim(min(found.along("C", "latency").values()), least, reproduces)],
    )


def _claim(measured: float, least: float, reproduces: bool) -> Claim:
    return Claim("the least latency", measured, low=least, unit="s", reproduces=reproduces)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def threads() -> Iterator[Executor]:
        with ThreadPoolExecutor(1) as pool:
            yield pool

    monkeypatch.setattr(command, "workers", threads)
    monkeypatch.setattr(command, "can_draw", lambda: False)
    monkeypatch.setattr(command, "FIGURES", {"tiny": tiny(0.0001), "false": tiny(1.0)})
    monkeypatch.setitem(command.FIGURES, "known", tiny(1.0, reproduces=False))


@pytest.fixture
def drawn(made: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take most of the time: only few tests need them."""
    monkeypatch.setattr(command, "can_draw", lambda: True)


@pytest.mark.usefixtures("drawn")
def test_a_figure_writes_its_data_and_its_picture_and_says_what_holds(tmp_path: Path) -> None:
    out = io.StringIO()
    assert command.make_figures("tiny", tmp_path / "new", out=out) == 0
    assert (tmp_path / "new" / "tiny.csv").read_text().splitlines()[0] == "curve,rate,seconds"
    assert "<svg" in (tmp_path / "new" / "tiny.svg").read_text()
    told = "holds  the least latency: 0.11 ms (must be at least 0.1 ms)"
    assert told in out.getvalue() and told in (tmp_path / "new" / "tiny.txt").read_text()


@pytest.mark.usefixtures("made")
def test_a_claim_that_fails_gives_exit_code_1(tmp_path: Path) -> None:
    out = io.StringIO()
    assert command.make_figures("all", tmp_path, out=out) == 1
    assert "FAILS  the least latency" in out.getvalue()
    assert "holds  the least latency" in out.getvalue()


@pytest.mark.usefixtures("made")
def test_a_claim_that_is_known_not_to_reproduce_is_told_and_gives_exit_code_0(tmp_path: Path) -> None:
    out = io.StringIO()
    assert command.make_figures("known", tmp_path, out=out) == 0
    assert "differs  the least latency: 0.11 ms (the paper has at least 1 s; known not to reproduce)" in out.getvalue()
    out = io.StringIO()
    command.make_figures("known", tmp_path, as_json=True, out=out)
    told = json.loads(out.getvalue())
    assert (told["holds"], told["as_expected"], told["claims"][0]["reproduces"]) == (False, True, False)


@pytest.mark.usefixtures("drawn")
def test_a_program_can_read_it(tmp_path: Path) -> None:
    out = io.StringIO()
    command.make_figures("tiny", tmp_path, as_json=True, out=out)
    (told,) = map(json.loads, out.getvalue().splitlines())
    assert told["holds"] is True
    assert told["claims"][0]["measured"] == pytest.approx(0.00011, rel=0.1)
    assert told["files"] == [str(tmp_path / f"tiny.{ending}") for ending in ("csv", "svg", "txt")]


@pytest.mark.usefixtures("drawn")
def test_a_figure_is_drawn_again_from_its_table(tmp_path: Path) -> None:
    command.make_figures("tiny", tmp_path, out=io.StringIO())
    picture, out = tmp_path / "tiny.svg", io.StringIO()
    before = picture.read_bytes()
    picture.unlink()
    assert command.redraw_figures("tiny", tmp_path, out=out) == 0
    assert (picture.read_bytes(), out.getvalue()) == (before, f"{picture}\n")
    for spoil in (lambda table: table.write_text("curve,other\nC,1\n"), Path.unlink):
        spoil(tmp_path / "tiny.csv")
        with pytest.raises(RequestError, match=r'tiny.csv" is not there, or has not the columns of figure "tiny"'):
            command.redraw_figures("tiny", tmp_path)


@pytest.mark.usefixtures("made")
def test_without_matplotlib_a_figure_has_its_data_and_claims_and_says_what_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.make_figures("tiny", tmp_path, as_json=True) == 0
    told = capsys.readouterr()
    assert told.err == 'no picture is drawn: install the extra "millrace[figures]" for pictures\n'
    made = [str(tmp_path / name) for name in ("tiny.csv", "tiny.txt")]
    assert json.loads(told.out)["files"] == sorted(map(str, tmp_path.iterdir())) == made
    with pytest.raises(RequestError, match="matplotlib, which draws pictures, is not installed"):
        command.redraw_figures("tiny", tmp_path)


def test_an_unknown_figure_is_refused_with_the_near_miss(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as raised:
        command.make_figures("ets-latncy", tmp_path / "out")
    assert raised.value.fact == 'there is no figure "ets-latncy"'
    assert 'Did you mean "ets-latency"?' in raised.value.hint
    assert not (tmp_path / "out").exists()


def test_the_figures_are_listed() -> None:
    out = io.StringIO()
    assert command.list_figures(out=out) == 0
    assert [line.split()[0] for line in out.getvalue().splitlines()] == list(command.FIGURES)
    out = io.StringIO()
    command.list_figures(as_json=True, out=out)
    assert {"figure", "paper", "shows"} == set(json.loads(out.getvalue().splitlines()[0]))


@pytest.mark.usefixtures("made")
def test_progress_is_told_on_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status_line, "_EVERY", 0.0)
    command.make_figures("tiny", tmp_path, out=io.StringIO())
    _, *told = capsys.readouterr().err.splitlines()
    assert [line[:18] for line in told] == ["tiny: 1 of 2 runs,", "tiny: 2 of 2 runs,"]


@pytest.mark.slow
def test_what_goes_wrong_meanwhile_leaves_neither_process_nor_thread() -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), workers() as pool:
        running = pool.submit(sleep, 60)
        raise KeyboardInterrupt
    assert running.exception()
    assert not active_children()
    assert set(threading.enumerate()) <= before
