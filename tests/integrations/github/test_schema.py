"""The GraphQL documents against GitHub's schema: its part kept here, and the whole from npm."""

import pytest
from graphql import parse, validate

from tests.fakes.github import schema
from tests.integrations.github.asking import EVERYTHING, full, started
from tests.integrations.github.documents import DOCUMENTS

documents = pytest.mark.parametrize("name", list(DOCUMENTS))


def test_a_document_is_valid_on_the_part_of_the_schema(subtests: pytest.Subtests) -> None:
    for name, text in DOCUMENTS.items():
        with subtests.test(name):
            assert validate(schema.part(), parse(text)) == []


def test_no_document_searches() -> None:
    assert [name for name, text in DOCUMENTS.items() if "search" in text] == []


@pytest.mark.system
@documents
def test_a_document_is_valid_on_the_whole_schema(name: str) -> None:
    assert validate(schema.whole(), parse(DOCUMENTS[name])) == []


@pytest.mark.system
def test_the_part_of_the_schema_is_what_the_documents_use_of_the_whole() -> None:
    assert schema.PART.read_text() == schema.pruned(schema.whole(), DOCUMENTS.values())


@pytest.mark.system
async def test_every_leaf_has_a_value_on_the_whole_schema() -> None:
    _, collector = started(full(), whole_schema=True)
    assert (await collector.one()).values == EVERYTHING
