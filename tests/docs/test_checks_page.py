"""The example of the page of checks works, and the page names every member that there is."""

import re
from typing import Any

import pytest
import yaml

from factbook.checks import document_readers
from factbook.checks.definitions import definition_writes
from factbook.checks.definitions.definition_writes import CheckContext
from factbook.checks.rules import check_definition, check_trial
from factbook.checks.rules.check_definition import CHECK_MEMBERS, parse_check
from factbook.facts.datasource import DataSource
from factbook.facts.schema import CODEHOST
from factbook.integrations.integration import list_shape_facts
from tests.docs.parts import DOCS
from tests.service import NOON

PAGE = (DOCS / "reference" / "checks.md").read_text()
GITHUB = DataSource(id="github", title="GitHub", schema=list_shape_facts(CODEHOST))


@pytest.fixture
def example() -> dict[str, Any]:
    """The check of the page."""
    [text] = re.findall(r"^```yaml\n(check: .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return document_readers.parse_file_document(yaml.safe_load(text)).document


def test_the_example_is_a_check_whose_tests_hold(example: dict[str, Any]) -> None:
    check = parse_check(example)

    assert definition_writes.find_check_problems(check, CheckContext({"github": GITHUB}, {})) == []
    assert all(one.passed for one in check_trial.try_check(check, NOON))
    assert list(check_trial.list_test_gaps(check)) == []


def test_the_page_names_every_member_of_a_check_and_of_its_tests() -> None:
    members = {member.key for member in CHECK_MEMBERS}
    expected = {f"`{name}`" for name in members | check_definition.TEST_MEMBERS}

    assert {name for name in expected if name not in PAGE} == set()
