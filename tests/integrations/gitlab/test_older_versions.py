"""A GitLab older than our queries: its version is named, and only what it lacks is unknown."""

from pathlib import Path

import msgspec
import pytest
from graphql import (
    DocumentNode,
    FieldNode,
    OperationDefinitionNode,
    SelectionSetNode,
    parse,
    validate,
)

from factbook.importers.gitlab import queries as importer_queries
from factbook.integrations import code_host
from factbook.integrations.gitlab import facts
from tests.fakes import faults
from tests.fakes.gitlab.app import schema
from tests.integrations.gitlab.asking import APP, differences, full, started

VENDORS = Path(__file__).parents[2] / "data" / "vendors"
LANGUAGES = "codehost.collaboration.languages"


async def test_a_recorded_refusal_of_a_field_costs_its_leaf_alone() -> None:
    recorded = msgspec.json.decode((VENDORS / "06-undefined-field-gitlab-15.json").read_bytes())
    fake, collector = started(full())
    fake.version = "15.4.2-ee"
    fake.fail("graphql", faults.saying(recorded["body"], recorded["status"]))
    collected = await collector.one()
    assert differences(collected) == ({}, {LANGUAGES: "feature-off"})
    reason = "feature-off: GitLab 15.4.2 lacks languages in GraphQL"
    assert collected.reasons[LANGUAGES] == reason
    assert LANGUAGES not in collected.passing


async def test_fields_and_arguments_that_a_version_lacks_are_left_out_of_later_queries() -> None:
    others = [full() for _ in range(3)]
    for number, one in enumerate(others):
        one.name, one.number = f"acme/app-{number}", number + 1
    fake, collector = started(*others)
    fake.lacks = frozenset(
        {"  languages: [RepositoryLanguage!]", "    closedAfter: Time\n", "  bot: Boolean!\n"}
    )
    for collected in (await collector.collect(*[one.name for one in others])).values():
        values, reasons = differences(collected)
        assert values == {}
        assert set(reasons.values()) == {"feature-off"}
        assert reasons.keys() == {
            LANGUAGES,
            "codehost.issues.closedLastMonth",
            "codehost.pullRequests.merged",
            "codehost.pullRequests.mergedPercentage",
            "codehost.mergeTime",
            "codehost.latestMergedPR",
        }
        assert collected.reasons["codehost.issues.closedLastMonth"] == (
            "feature-off: GitLab 18.5.1 lacks closedAfter in GraphQL"
        )
    assert fake.requests["version"] == 1


async def test_one_collection_asks_once_for_the_version() -> None:
    fake, collector = started(full())
    fake.lacks = frozenset({"  languages: [RepositoryLanguage!]"})
    fake.fail("version", faults.saying({}, 403))
    collected = await collector.collect(APP, "acme/nowhere")
    assert (
        collected[APP].reasons[LANGUAGES] == "feature-off: this GitLab lacks languages in GraphQL"
    )
    assert fake.requests["version"] == 1


async def test_a_field_without_which_nothing_is_known_is_named() -> None:
    fake, collector = started(full())
    fake.lacks = frozenset({"  fullPath: ID!\n"})
    collected = await collector.one()
    assert collected.reasons == {"": "feature-off: GitLab 18.5.1 lacks fullPath in GraphQL"}


@pytest.mark.slow
def test_a_query_without_one_of_its_fields_is_still_valid(subtests: pytest.Subtests) -> None:
    for document in (facts.PROJECT_QUERY, facts.MERGED_QUERY, importer_queries.ROOTS_QUERY):
        fields = [one for one in _fields(parse(document)) if len(one) > 1]
        assert len(fields) > 5
        for path in fields:
            with subtests.test(".".join(path)):
                left = parse(code_host.remove_fields(document, {path}))
                assert path not in _fields(left)
                assert validate(schema(), left) == []


def _fields(document: DocumentNode) -> set[tuple[str, ...]]:
    [operation] = document.definitions
    assert isinstance(operation, OperationDefinitionNode)
    found: list[tuple[tuple[str, ...], SelectionSetNode]] = [((), operation.selection_set)]
    for path, selections in found:
        for node in selections.selections:
            assert isinstance(node, FieldNode)
            below = node.selection_set or SelectionSetNode(selections=())
            found.append(((*path, (node.alias or node.name).value), below))
    return {path for path, _ in found}
