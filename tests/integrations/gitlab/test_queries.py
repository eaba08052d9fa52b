"""The GraphQL documents against GitLab's schema, and against its limit on complexity."""

import pytest
from graphql import parse, validate

from factbook.importers.gitlab import queries as imports
from factbook.integrations.gitlab import queries
from tests.fakes.gitlab.app import MOST_COMPLEXITY, schema
from tests.fakes.gitlab.resolvers import complexity

DOCUMENTS = {
    "project": queries.PROJECT,
    "merged": queries.MERGED,
    "members": queries.MEMBERS,
    "codeowners": queries.CODEOWNERS,
    "roots": imports.ROOTS,
    "files": imports.files(2),
}
documents = pytest.mark.parametrize("name", list(DOCUMENTS))


@documents
def test_a_document_is_valid_on_the_schema(name: str) -> None:
    assert validate(schema(), parse(DOCUMENTS[name])) == []


@documents
def test_a_document_stays_far_below_the_limit_on_complexity(name: str) -> None:
    assert complexity(parse(DOCUMENTS[name])) <= MOST_COMPLEXITY / 2


def test_only_the_document_about_code_owners_needs_the_enterprise_edition() -> None:
    community = schema(enterprise=False)
    refused = {name for name in DOCUMENTS if validate(community, parse(DOCUMENTS[name]))}
    assert refused == {"codeowners"}
