"""Spark's Java classes as an archive that Java maps into memory, instead of unpacking and checking them at every start.

Java and Spark are up with 0.4 of the work that it takes without (16 s of processor time, 6.5 s with the archive).

Rules:
- No run waits for the archive, and none fails without it: Java writes it when it ends, after the run. A folder that
  cannot be written is not used.
- A Java that writes it starts with half as much work again. So the second run does it: a single run, such as a test in
  a fresh container, does not pay for what is not used.
- An archive is for one Java and one set of class files, at one path. The folder's name stands for all of them, and it
  holds the home of Spark too: with a path that is new in every run the archive would be of no use.
- It is written under a name of its own and renamed at a later start, if it is whole: runs at one time do not disturb
  each other.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import pyspark

_ARCHIVE = "classes.jsa"
_PART = ".part"
_SEEN = "seen"
"""A file that says that Spark has run here, and then how large the archive is."""
_QUIET = "-Xlog:cds=off,cds+dynamic=off,class+path=off"
"""Java says on the terminal why it does not use an archive, and goes on without."""
_NO_TRACES = ("-XX:-CreateCoredumpOnCrash", f"-XX:ErrorFile={os.devnull}")
_UNDER_WAY = 600.0
"""Seconds for which an archive that is not whole may still be written to, though its run has ended."""
_PARTS_OF_HOME = ("bin", "conf", "jars", "sbin")


def cache_folder() -> Path:
    """Where what can be made again is kept for later runs."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "millrace"


def kept_folder(java: str | None, version: str) -> Path | None:
    """The folder of this Java and this Spark, made if need be; None where there can be none."""
    try:
        folder = cache_folder() / f"spark-{_digest(_installed(), java or '', version)}"
        folder.mkdir(parents=True, exist_ok=True)
        lean_home(folder)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def folder_until_exit() -> Path:
    """A folder for what Spark reads while it runs."""
    folder = Path(tempfile.mkdtemp(prefix="millrace-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def lean_home(folder: Path) -> Path:
    """Spark's home in a folder, without its zipped Python part, so that workers import the installed one.

    From the zip every worker process compiles PySpark anew: 0.8 s per process instead of 0.2 s, seven times per start.
    """
    home, own = folder / "spark", folder / f"spark.{os.getpid()}"
    if not home.is_dir():
        own.mkdir()
        for part in _installed().iterdir():
            if part.name in _PARTS_OF_HOME:
                (own / part.name).symlink_to(part)
        try:
            own.rename(home)
        except OSError:
            # Another run has been quicker.
            shutil.rmtree(own)
    return home


def archive_options(folder: Path, java: str | None, *, write: bool = True) -> list[str]:
    """The Java options that use the archive in a folder, or write it at the end; none if this Java cannot.

    To write it, Java must have no options of the user's: with some of them it would refuse to start.
    """
    command = shutil.which(java or "java")
    if command is None or not _has_base(command):
        return []
    try:
        under_way = _adopt(folder, command)
        if _usable(folder):
            return [f'"-XX:SharedArchiveFile={folder / _ARCHIVE}"', _QUIET]
        if under_way or not write or not (folder / _SEEN).exists():
            (folder / _SEEN).touch()
            _drop_dead(folder.parent)
            return []
        part = folder / f"{_ARCHIVE}.{os.getpid()}{_PART}"
        part.touch()
    except OSError:
        return []
    return [f'"-XX:ArchiveClassesAtExit={part}"', _QUIET]


def _adopt(folder: Path, command: str) -> bool:
    """Give an archive that an earlier run has written its name; True if one is under way still."""
    under_way = False
    for part in folder.glob(f"{_ARCHIVE}.*{_PART}"):
        with suppress(FileNotFoundError):
            if _whole(part) and _taken(part, command):
                (folder / _SEEN).write_text(str(part.stat().st_size))
                part.replace(folder / _ARCHIVE)
            elif _fresh(part):
                under_way = True
            else:
                part.unlink()
    return under_way


def _usable(folder: Path) -> bool:
    """True if there is an archive of the size that it had when it was looked at: Java dies of one that is cut short."""
    archive = folder / _ARCHIVE
    if not archive.is_file():
        return False
    if (folder / _SEEN).read_text() == str(archive.stat().st_size):
        return True
    archive.unlink()
    return False


def _taken(part: Path, command: str) -> bool:
    """True if Java starts with an archive."""
    try:
        ran = subprocess.run(
            [command, f"-XX:SharedArchiveFile={part}", *_NO_TRACES, "-version"],
            capture_output=True,
            timeout=60,
        )
    except subprocess.SubprocessError:
        return False
    return ran.returncode == 0


def _fresh(part: Path) -> bool:
    """True if Java may still be at work on an archive: its run goes on, or has ended a short while ago."""
    if _whole(part):
        return False
    return _alive(int(part.name.split(".")[-2])) or time.time() - part.stat().st_mtime < _UNDER_WAY


def _whole(part: Path) -> bool:
    """True if an archive has been written to its end: Java writes the first bytes last."""
    with part.open("rb") as file:
        return any(file.read(4))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _has_base(command: str) -> bool:
    """True if Java brings the archive of its own classes, on which ours builds; without, it would refuse to start."""
    return (Path(command).resolve().parents[1] / "lib" / "server" / _ARCHIVE).is_file()


def _digest(installed: Path, java: str, version: str) -> str:
    """A short text that differs for different class files and different Javas."""
    digest = blake2b(f"{installed}\n{pyspark.__version__}\n{java}\n{version}\n".encode(), digest_size=8)
    for jar in sorted((installed / "jars").iterdir()):
        status = jar.stat()
        digest.update(f"{jar.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _drop_dead(cache: Path) -> None:
    """Remove the folders of Sparks that are no longer installed."""
    for folder in cache.glob("spark-*"):
        if (folder / "spark" / "jars").is_symlink() and not (folder / "spark" / "jars").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _installed() -> Path:
    return Path(pyspark.__file__).parent
