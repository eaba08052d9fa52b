"""Decisions: at most twenty pages by subject, all listed, and every former number found."""

import re

import pytest

from tests.docs.parts import DOCS

FOLDER = DOCS / "decisions"
INDEX = (FOLDER / "index.md").read_text()
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")


def test_every_page_has_a_subject_and_sections_and_is_listed(subtests: pytest.Subtests) -> None:
    assert 0 < len(PAGES) < 20
    for page in PAGES:
        with subtests.test(page.stem):
            lines = page.read_text().splitlines()
            assert lines[0].startswith("# ")
            assert [line for line in lines if line.startswith("## ")]
            assert f"]({page.name})" in INDEX


def test_every_former_number_leads_to_a_section() -> None:
    numbers = re.findall(r"^\| (\d{4}) \| \[.+\]\(\S*#\S+\) \|$", INDEX, re.MULTILINE)
    assert numbers == [f"{number:04}" for number in range(1, 70)]
