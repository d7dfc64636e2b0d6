"""What the documents name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millrace.language import parse_network

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "millrace"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES = [*DOCUMENTS, *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_a_document_names_exists(document: Path) -> None:
    named = re.findall(r"`((?:src|tests|docs|examples|bench|scripts)/[\w./-]*)`", document.read_text())
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing


def test_every_package_is_on_the_page_of_the_architecture() -> None:
    """In a row of its own, or as `name/` in the row of the package above it."""
    rows = dict(re.findall(r"^\| `src/millrace/([\w/]+)/` \| (.*) \|$", ARCHITECTURE.read_text(), flags=re.MULTILINE))
    packages = [path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    named = [f"{row}/{name}" for row, text in rows.items() for name in re.findall(r"`(\w+)/`", text)]
    assert [str(package) for package in packages if str(package) not in {*rows, *named}] == []


def test_every_decision_has_a_number_of_its_own() -> None:
    for number, path in enumerate(sorted((ROOT / "docs" / "decisions").iterdir()), start=1):
        assert path.name.startswith(f"{number:04d}-") and path.read_text().startswith(f"# {number:04d} "), path.name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = set(re.findall(r"^ +- ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    missing = sorted(page for page in pages if page not in listed and not page.startswith("decisions/"))
    assert missing == [], "add them to nav in mkdocs.yml"


def test_the_streams_of_the_guide_can_be_declared() -> None:
    text = (ROOT / "docs" / "guide.md").read_text()
    blocks = re.findall(r"```sql\n(CREATE .*?)```", text, flags=re.DOTALL)
    script = "".join(blocks) + "CREATE SINK counts TO parquet OPTIONS (path 'out');"
    names = [query.name for query in parse_network(script).queries]
    assert names == [
        "per_device",
        "by_end",
        "by_start",
        "per_type",
        "hot",
        "sold",
        "notes",
        "paid",
        "priced",
        "per_minute",
        "by_country",
        "told_minutes",
    ]


def test_the_streams_of_the_page_about_kafka_can_be_declared() -> None:
    text = (ROOT / "docs" / "kafka.md").read_text()
    script = "".join(re.findall(r"```sql\n(CREATE .*?)```", text, flags=re.DOTALL))
    network = parse_network(f"{script} CREATE QUERY ids AS SELECT id FROM payments; SELECT id FROM users;")
    assert [stream.connector.format for stream in network.streams()] == ["kafka", "kafka", "kafka"]


def test_the_example_of_nested_values_in_the_guide_holds() -> None:
    text = (ROOT / "docs" / "guide.md").read_text()
    (example,) = re.findall(r"```python\n(import datetime as dt\nfrom decimal.*?)```", text, flags=re.DOTALL)
    exec(example, {})
    script = (ROOT / "examples" / "baskets.sql").read_text().partition("\n")[2]
    assert f"```sql\n{script}```" in text


def test_the_examples_of_the_testing_page_hold() -> None:
    text = (ROOT / "docs" / "testing.md").read_text()
    examples = re.findall(
        r"```python\n(from millrace.testing import Bench.*?|import pyarrow.*?)```", text, flags=re.DOTALL
    )
    assert len(examples) == 2
    for example in examples:
        exec(example, {})


def test_what_the_guide_says_of_a_changed_file_is_what_the_example_says() -> None:
    text = (ROOT / "docs" / "guide.md").read_text()
    shown = re.findall(r"```text\n\$ millrace run [^\n]* --dry-run\n(.*?)```", text, flags=re.DOTALL)[0]
    printed = (ROOT / "examples" / "evolution.out").read_text().splitlines(keepends=True)
    assert shown == "".join(line for line in printed if "\t" not in line)
