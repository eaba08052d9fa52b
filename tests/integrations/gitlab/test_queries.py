"""The GraphQL documents against GitLab's schema, and against its limit on complexity."""

import pytest
from graphql import parse, validate

from factbook.importers.gitlab import queries as importer_queries
from factbook.integrations.gitlab import facts
from tests.fakes.gitlab.app import MOST_COMPLEXITY, schema
from tests.fakes.gitlab.resolvers import complexity

DOCUMENTS = {
    "project": facts.PROJECT_QUERY,
    "merged": facts.MERGED_QUERY,
    "members": facts.MEMBERS_QUERY,
    "codeowners": facts.CODEOWNERS_QUERY,
    "roots": importer_queries.ROOTS_QUERY,
    "files": importer_queries.make_gitlab_files_query(2),
}


def test_a_document_is_valid_on_the_schema(subtests: pytest.Subtests) -> None:
    for name, text in DOCUMENTS.items():
        with subtests.test(name):
            assert validate(schema(), parse(text)) == []


def test_a_document_stays_far_below_the_limit_on_complexity() -> None:
    figures = {name: complexity(parse(text)) for name, text in DOCUMENTS.items()}
    assert {name: each for name, each in figures.items() if each > MOST_COMPLEXITY / 2} == {}


def test_only_the_document_about_code_owners_needs_the_enterprise_edition() -> None:
    community = schema(enterprise=False)
    refused = {name for name in DOCUMENTS if validate(community, parse(DOCUMENTS[name]))}
    assert refused == {"codeowners"}
