"""Every block of code in a document runs, or says in the line above it why it does not.

Queries are read and bound to streams of their names, Python is executed, and commands are read by the parser of the
command line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import millrace as mr
from millrace.commands.command_line import _parser
from millrace.connectors.postgres.postgres_writer import PostgresWriter
from millrace.language import parse_network

ROOT = Path(__file__).resolve().parents[2]
TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<above>[^\n]*)\n+```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = {"text", "yaml", "json", "toml", "promql", "ini"}
"""Kinds of blocks that are no code of ours."""
DECLARED = re.compile(r"^CREATE (?:STREAM|TABLE|SINK|FUNCTION|AGGREGATE) (\w+)\b.*?;$", re.MULTILINE | re.DOTALL)

STREAMS = {
    "s": "id INT, k STRING, v DOUBLE, ts TIMESTAMP",
    "a": "k STRING, v INT, ts TIMESTAMP, expires TIMESTAMP",
    "b": "k STRING, v INT, ts TIMESTAMP",
    "c": "k STRING, ts TIMESTAMP",
    "d": "k STRING, ts TIMESTAMP",
    "control": "srcIP STRING, destIP STRING, len INT, ts TIMESTAMP",
    "main2": "srcIP STRING, destIP STRING, len INT, ts TIMESTAMP",
    "trades": "symbol STRING, k STRING, price DOUBLE, ts TIMESTAMP",
    "quotes": "symbol STRING, k STRING, bid DOUBLE, ts TIMESTAMP",
    "orders": "id BIGINT, item STRING, ts TIMESTAMP",
    "payments": "order_id BIGINT, cents BIGINT, ts TIMESTAMP",
    "prices": "item STRING, cents BIGINT, ts TIMESTAMP",
    "stocks": "item STRING, pieces BIGINT, ts TIMESTAMP",
    "cases": "gate STRING, ts TIMESTAMP",
    "products": "gate STRING, ts TIMESTAMP",
    "clicks": "page STRING, user_id BIGINT, ts TIMESTAMP",
    "pageviews": "user_id BIGINT, page STRING, ts TIMESTAMP",
    "bids": "symbol STRING, price DOUBLE, ts TIMESTAMP",
    "asks": "symbol STRING, price DOUBLE, ts TIMESTAMP",
    "backup": "symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP",
}
UPDATES = {"bids", "asks", "backup"}
OTHERS = """
CREATE SINK counts TO csv OPTIONS (path 'out');
CREATE FUNCTION risk_of(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'my_module:risk_of';
"""


@dataclass(frozen=True)
class Block:
    """A block of a page, and the blocks before it."""

    page: Path
    line: int
    kind: str
    text: str
    above: str
    before: str

    @property
    def runs(self) -> bool:
        """True if the block neither includes a file nor says why it does not run."""
        return "--8<--" not in self.text and not re.fullmatch(r"<!-- not run: .+ -->", self.above)


def blocks(*kinds: str) -> list[Any]:
    found = [block for page in PAGES for block in blocks_of(page) if block.kind in kinds and block.runs]
    return [pytest.param(block, id=f"{block.page.relative_to(ROOT)}:{block.line}") for block in found]


def blocks_of(page: Path) -> Iterator[Block]:
    text, before = page.read_text(), ""
    for found in FENCE.finditer(text):
        line = text[: found.start("text")].count("\n")
        block = Block(page, line, found["kind"], found["text"], found["above"], before)
        yield block
        if block.kind == "sql" and block.runs:
            before += block.text


def test_every_block_says_what_it_is() -> None:
    known = {"sql", "python", "sh"} | OUTPUT
    wrong = [
        f"{page.relative_to(ROOT)}:{each.line}" for page in PAGES for each in blocks_of(page) if each.kind not in known
    ]
    assert wrong == [], "name the language after the backquotes: sql, python, sh, or text for output"


@pytest.mark.parametrize("block", blocks("sql"))
def test_the_queries_of_a_block_are_accepted(block: Block) -> None:
    lines = [line for line in block.text.splitlines() if "…" not in line]
    if all(line.startswith("FROM ") for line in lines):
        for line in lines:
            parse_network(world(block, line) + f"SELECT 1 AS one {line};")
    else:
        parse_network(world(block, block.text) + block.text)


def world(block: Block, text: str) -> str:
    """Declarations of what a text names: those of the page before it, else our own."""
    parts = {found[1]: found[0] for found in DECLARED.finditer(OTHERS)}
    parts |= {name: declaration(name) for name in STREAMS}
    parts |= {found[1]: found[0] for found in DECLARED.finditer(block.before)}
    own = {found[1] for found in DECLARED.finditer(text)}
    variables = {f"SET {name} = 'x=y';" for name in re.findall(r"\$\{(\w+)\}", block.before + text)}
    return "\n".join([*sorted(variables), *(part for name, part in parts.items() if name not in own), ""])


def declaration(name: str) -> str:
    key = " UPDATE KEY (symbol)" if name in UPDATES else ""
    return f"CREATE STREAM {name} ({STREAMS[name]}) TIMESTAMP BY ts ORDERED{key} FROM csv OPTIONS (path '{name}.csv');"


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_of_a_block_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT if "examples/" in block.text else tmp_path)
    if block.page.name == "README.md":
        rows = pa.table(
            {"srcIP": ["a"], "len": pa.array([1], pa.int32()), "ts": pa.array([0], pa.timestamp("us", "UTC"))}
        )
        (tmp_path / "data" / "link").mkdir(parents=True)
        pyarrow.parquet.write_table(rows, tmp_path / "data" / "link" / "1.parquet")
    names = namespace(block.text)
    # The answer is the same on every host, and this one starts at once.
    exec(block.text.replace('on="spark"', 'on="local"'), names)
    if "handle" in names and "handle." in block.text:
        names["handle"].stop()


def namespace(text: str) -> dict[str, Any]:
    """What a block may take for granted: relations, a run at work, and functions of a user's own."""
    names: dict[str, Any] = {"mr": mr, "net": (net := mr.Network()), "load_codes": list, "show": print, "RATES": {}}
    for name, columns in STREAMS.items():
        if re.search(rf"\b{name}\b", text) and f'"{name}"' not in text:
            names[name] = net.stream(name, columns, time="ts", source=[])
    names |= {"PostgresWriter": PostgresWriter, "ask_the_bank": list}
    if "counts," in text:
        names["counts"] = net.stream("counted", "n INT, ts TIMESTAMP", time="ts", source=[])
    if "handle." in text and "handle =" not in text:
        names |= live_run() if "dns" in text else ended_run()
    return names


def live_run() -> dict[str, Any]:
    """A run at work that takes pushed rows."""
    net = mr.Network()
    dns = net.stream("dns", "host STRING, ts TIMESTAMP", time="ts", source=mr.Pushed())
    return {"handle": net.query("per_type", dns.select("host")).run(on="local", background=True), "dns": dns}


def ended_run() -> dict[str, Any]:
    """A run with answers by key that has ended."""
    net = mr.Network()
    quotes = net.stream("q", "symbol STRING, price DOUBLE, ts TIMESTAMP", time="ts", update_key="symbol", source=[])
    return {"handle": net.query("prices", quotes.select("symbol", "price")).run(on="local", until="end")}


@pytest.mark.parametrize("block", blocks("sh"))
def test_the_commands_of_a_block_are_understood(block: Block) -> None:
    for command in commands(block.text):
        match command:
            case ["millrace", name, *rest]:
                _parser(name).parse_args([name, *rest])
            case ["make", *targets]:
                known = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
                assert {target for target in targets if "=" not in target} <= set(known)
            case ["python", path, *_] if path.endswith(".py"):
                assert (ROOT / path).is_file()


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a block, without what a shell does with their output."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in line.split("&&"):
            words = shlex.split(part, comments=True)
            yield list(takewhile(lambda word: word not in ("|", ">", "2>", "&"), words))


def test_a_block_that_is_wrong_is_noticed() -> None:
    wrong = Block(ROOT / "README.md", 1, "sql", "SELECT nothing FROM s;", "", "")
    with pytest.raises(mr.MillraceError, match="nothing"):
        test_the_queries_of_a_block_are_accepted(wrong)
    with pytest.raises(SystemExit), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", StringIO())
        test_the_commands_of_a_block_are_understood(Block(ROOT / "README.md", 1, "sh", "millrace run f --soon", "", ""))
