"""The documentation is a whole site: every link and anchor leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

mkdocs_build = pytest.importorskip("mkdocs.commands.build", reason="the extra docs is not installed")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*rel=\"?stylesheet[^>]*//")
WORDS = "pip install,dedup,upsert,enrich,notebook,exactly once,watermark,session,percentile,anti-join,cluster,alerts"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    return built(ROOT, tmp_path_factory.mktemp("site"))


def built(root: Path, folder: Path) -> Path:
    from mkdocs.config import load_config

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.chdir(root)
        mkdocs_build.build(load_config(str(root / "mkdocs.yml"), site_dir=str(folder)))
    return folder


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []
    assert [
        sheet.name for sheet in site.rglob("*.css") if re.search(r"url\([\"']?(https?:)?//", sheet.read_text())
    ] == []


def test_words_that_people_search_for_are_found(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    text = " ".join(f"{each['title']} {each['text']}" for each in index["docs"]).lower()
    assert [word for word in WORDS.split(",") if word not in text] == []


def test_pages_include_the_recipes_themselves(site: Path) -> None:
    page = re.sub(r"<[^>]+>", "", (site / "cookbook" / "sessions.html").read_text())
    assert "[SESSION 5 HOURS]" in page and "N760US" in page


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("[gone](gone.md)", "gone.md"),
        ("[gone](sql.md#no-such-place)", "no-such-place"),
        ('```sql\n--8<-- "examples/cookbook/gone.sql"\n```', "gone.sql"),
    ],
)
def test_a_dead_link_an_anchor_or_a_missing_file_is_an_error(
    wrong: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "docs").mkdir()
    config = (ROOT / "mkdocs.yml").read_text()
    head = config[: config.index("not_in_nav:")].replace("hooks: [scripts/site.py]\n", "").replace("[site.css]", "[]")
    (tmp_path / "mkdocs.yml").write_text(head + "nav: [index.md, sql.md]\n")
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{wrong}\n")
    shutil.copy(ROOT / "docs" / "security.md", tmp_path / "docs" / "sql.md")
    with pytest.raises(Exception) as raised:
        built(tmp_path, tmp_path / "site")
    assert said in f"{raised.value} {caplog.text}"
