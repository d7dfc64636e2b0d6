"""What MkDocs asks of us: pages that stand outside of docs/, a list of the decisions, and links between all of them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "benchmarks.md",
    "examples/cookbook/data/README.md": "cookbook/data.md",
}
"""Pages of the repository that the site has too, and where."""
LINK = re.compile(r"(\]\()(\.\./[^)#\s]+|[\w./-]+)(#[\w-]+)?(?=\))")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, the examples that pages link to, and the list of decisions."""
    for path, place in {**PAGES, **{path: path for path in _examples()}}.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "decisions/index.md", content=_decisions()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links that leave docs/, or that lead into it, into links of the site; leave out a list of no headings."""
    if "\n## " not in markdown:
        page.meta["hide"] = ["toc"]
    homes = {place: path for path, place in PAGES.items()}
    home = homes.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def link(found: re.Match[str]) -> str:
        start, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        uri = _site_path(path)
        return start + posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".") + anchor

    parts, last = [], 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(link, markdown[last : code.start()]), code.group()]
        last = code.end()
    return "".join([*parts, LINK.sub(link, markdown[last:])])


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the pictures of concepts into the page, where they take its colours."""
    folder = Path(config.docs_dir, page.file.src_uri).parent
    if folder.name != "concepts":
        return html
    return re.sub(r'<img [^>]*src="([\w-]+\.svg)"[^>]*>', lambda found: (folder / found.group(1)).read_text(), html)


def _site_path(path: str) -> str:
    """Where the site has a path of the repository."""
    if path == "docs/decisions":
        return "decisions/index.md"
    return PAGES.get(path, path.removeprefix("docs/"))


def _examples() -> list[str]:
    kept = (".py", ".sql", ".out", ".csv", ".json", ".yml")
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*") if path.suffix in kept)


def _decisions() -> str:
    """A page with a link to every decision."""
    found = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    titles = {path.name: path.read_text().partition("\n")[0].removeprefix("# ") for path in found}
    lines = [f"- [{title}]({name})" for name, title in titles.items()]
    return "# Decisions\n\nWhy things are as they are, one page each.\n\n" + "\n".join(lines) + "\n"
