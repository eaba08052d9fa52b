"""The log of decisions: numbered without a gap, each of one form, all of them listed."""

import pytest

from tests.docs.parts import DOCS

FOLDER = DOCS / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")
PARTS = ["## Context", "## Decision", "## Measurement", "## Consequences"]


def test_the_numbers_have_no_gap() -> None:
    numbers = [path.name[:4] for path in RECORDS]
    assert numbers == [f"{number:04}" for number in range(1, len(RECORDS) + 1)]


def test_a_record_has_its_four_parts_and_is_listed(subtests: pytest.Subtests) -> None:
    assert RECORDS
    for record in RECORDS:
        with subtests.test(record.stem):
            lines = record.read_text().splitlines()
            assert lines[0].startswith(f"# {record.name[:4]} ")
            assert [line for line in lines if line.startswith("## ")] == PARTS
            assert f"]({record.name})" in (FOLDER / "index.md").read_text()
