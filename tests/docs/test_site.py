"""The built documentation: complete, searchable, light and dark, and all from one host."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.html_page import HTMLPage
from tests.docs.parts import DOCS

ROOT = DOCS.parent
_IN_STYLE = re.compile(r"""(?:url\(|@import\s)\s*["']?([^"')\s;]+)""")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
page_of = cache(HTMLPage)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site: the one that `make test` has just built, or a new one."""
    if built_by_make := os.environ.get("FACTBOOK_TEST_SITE"):
        return ROOT / built_by_make
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def pages(site: Path) -> list[Path]:
    """Every page but the one for addresses that are not there, which knows no folder."""
    return [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]


def is_foreign(address: str) -> bool:
    """Tell whether an address names another host."""
    return bool(urlsplit(address).netloc)


@pytest.mark.slow
def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    found = [
        (path.relative_to(site), address)
        for path in site.rglob("*.html")
        for address in page_of(path).fetched
        if is_foreign(address)
    ]
    assert found == []


def test_no_style_fetches_anything_from_another_host(site: Path) -> None:
    styles = [*site.rglob("*.css"), *site.rglob("*.html")]
    found = [
        (path.relative_to(site), address)
        for path in styles
        for address in _IN_STYLE.findall(path.read_text())
        if is_foreign(address)
    ]
    assert found == []


def test_no_page_has_what_the_script_of_the_theme_fetches_from_another_host(site: Path) -> None:
    # Diagrams, and the figures of a repository.
    for path in pages(site):
        assert not page_of(path).classes & {"mermaid", "md-source"}, path


def test_every_page_has_search_and_both_themes(site: Path) -> None:
    for path in pages(site):
        page = page_of(path)
        assert "md-search__input" in page.classes, path
        assert {"__palette_0", "__palette_1", "__palette_2"} <= page.ids, path
    assert 'data-md-color-scheme="slate"' in (site / "index.html").read_text()


@pytest.mark.slow
def test_every_link_leads_to_a_page_and_a_heading(site: Path) -> None:
    dead = [
        (path.relative_to(site), link)
        for path in pages(site)
        for link in page_of(path).links
        if not is_foreign(link) and not link.startswith("mailto:") and not leads(path, link)
    ]
    assert dead == []


def leads(path: Path, link: str) -> bool:
    """Tell whether a link of a page has a target in the site."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    return target.suffix != ".html" or not parts.fragment or parts.fragment in page_of(target).ids


def test_every_link_of_the_files_beside_the_documentation_leads_somewhere(
    site: Path, subtests: pytest.Subtests
) -> None:
    names = [
        *("README.md", "ARCHITECTURE.md", "AGENTS.md", "CONTRIBUTING.md", "RELEASING.md"),
        *("SECURITY.md", "CHANGELOG.md"),
    ]
    for name in names:
        with subtests.test(name=name):
            text = _FENCED.sub("", (ROOT / name).read_text())
            dead = [
                link
                for link in _LINK.findall(text)
                if not is_foreign(link) and not kept(link, site)
            ]
            assert dead == []


def kept(link: str, site: Path) -> bool:
    """Tell whether a link of a file in the root names a file, and a heading if it is a page."""
    path, _, heading = link.partition("#")
    if not heading or not path.startswith("docs/"):
        return (ROOT / path).exists()
    page = path.removeprefix("docs/").removesuffix(".md").removesuffix("index").rstrip("/")
    return leads(site / "index.html", f"{page or '.'}#{heading}")


def test_decisions_are_pages_outside_the_menu(site: Path) -> None:
    links = page_of(site / "index.html").links
    assert (site / "decisions" / "index.html").is_file()
    assert not [link for link in links if link.startswith("decisions/") and link != "decisions/"]
    assert "docs/decisions/index.md" in (ROOT / "CONTRIBUTING.md").read_text()
