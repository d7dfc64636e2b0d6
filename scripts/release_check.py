"""Build the wheel and the sdist, look into them, and try each in an environment that has nothing else.

    python scripts/release_check.py [--keep FOLDER]

Every command runs in an empty folder, so that nothing of the checkout is found by chance. With Java on the machine the
queries run on Spark too. `--keep` leaves the two files in a folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = "".join(f"2024-01-01 00:00:{at:02},k{at % 3},{at}.5\n" for at in range(60))
CHANGED = """import millrace as mr
net = mr.Network()
s = net.stream("s", "ts TIMESTAMP, k STRING, v DOUBLE", time="ts", source="csv", path="clicks.csv")
counts = s.window(range="1 minute").group_by("k").agg(n="count(*)")
print(sum(net.query("q", counts).run(on="local", until="end").results("q").column("n").to_pylist()))
"""


def main() -> int:
    """Build and try; 0 if all of it works."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the wheel and the sdist there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        folder = Path(name)
        wheel, sdist = build(folder / "dist")
        check_files(wheel, sdist)
        python = environment(folder / "venv", wheel)
        try_out(python, folder / "wheel")
        run(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", sdist, folder=folder)
        try_out(python, folder / "sdist")
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for file in (wheel, sdist):
                shutil.copy(file, options.keep)
    print("the wheel and the sdist are good")
    return 0


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of this checkout."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, folder=ROOT)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def check_files(wheel: Path, sdist: Path) -> None:
    """The wheel holds every module and nothing else, and is for any machine; the sdist holds what builds it again."""
    source = ROOT / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    packed = zipfile.ZipFile(wheel).namelist()
    found = {name for name in packed if name.endswith(".py")}
    need(wheel.name.endswith("-py3-none-any.whl"), f"{wheel.name} is pure Python")
    need(found == expected, f"the wheel has all {len(expected)} modules, and no others")
    need(any(name.endswith("/licenses/LICENSE") for name in packed), "the wheel has the licence")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    need({f"src/{name}" for name in expected} <= names, "the sdist has all modules")
    need({"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= names, "the sdist has what builds it")


def environment(folder: Path, wheel: Path) -> Path:
    """The Python of a fresh environment with the wheel and what it requires."""
    run(sys.executable, "-m", "venv", folder, folder=ROOT)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, folder=folder)
    run(python, "-m", "pip", "check", folder=folder)
    return python


def try_out(python: Path, folder: Path) -> None:
    """The first minutes of a user, in an empty folder."""
    folder.mkdir()
    (folder / "clicks.csv").write_text("ts,k,v\n" + ROWS)
    millrace = python.parent / "millrace"
    need("usage: millrace" in run(millrace, folder=folder), "millrace prints help")
    need(run(millrace, "--version", folder=folder).startswith("millrace "), "it knows its version")
    need("9 of 9 windows" in run(millrace, "demo", "--on", "virtual", folder=folder), "the demonstration works")
    run(millrace, "new", "clicks.csv", folder=folder)
    run(millrace, "check", "clicks.sql", folder=folder)
    hosts = ["local", "virtual", *(["spark"] if shutil.which("java") else [])]
    answers = {host: run(millrace, "run", "clicks.sql", "--on", host, "--until-end", folder=folder) for host in hosts}
    need(sum(int(row.split("\t")[2]) for row in answers["local"].splitlines()[2:]) == 60, "every row is counted")
    same = {tuple(sorted(answer.splitlines())) for answer in answers.values()}
    need(len(same) == 1, f"the answers are the same on {', '.join(hosts)}")
    need(run(python, "-c", CHANGED, folder=folder).strip() == "60", "Python counts them too")


def run(command: str | Path, *arguments: str | Path, folder: Path) -> str:
    """What a command prints; its failure ends the check."""
    began = time.monotonic()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = [str(command), *map(str, arguments)]
    ran = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    print(f"{time.monotonic() - began:6.1f} s  {Path(words[0]).name} {' '.join(words[1:])[:100]}".replace("\n", " "))
    if ran.returncode:
        sys.exit(f"release-check: it failed with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def need(holds: bool, what: str) -> None:
    """A fact that must hold."""
    if not holds:
        sys.exit(f"release-check: this does not hold: {what}")
    print(f"    ok    {what}")


if __name__ == "__main__":
    sys.exit(main())
