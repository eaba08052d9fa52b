"""The starter scorecard: valid, tested by its own tests, and off until somebody adopts it."""

import pytest

from factbook.checks.definitions import definition_writes, scorecard
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.definitions.definition_writes import CheckContext
from factbook.checks.document_readers import DefinitionDocument
from factbook.checks.rules import check_trial
from factbook.checks.rules.check_definition import parse_check
from factbook.facts.datasource import DataSource
from factbook.facts.schema import CODEHOST, SECURITY
from factbook.integrations.integration import list_shape_facts
from factbook.storage import Database
from tests.service import NOON

ANN = "user:default/ann"
HOSTS = [
    DataSource(
        id=id_,
        title=id_.title(),
        schema=(*list_shape_facts(CODEHOST), *list_shape_facts(SECURITY, "dependencyAlerts")),
        entity_filter=[{f"metadata.annotations.{id_}.com/slug": {"exists": True}}],
    )
    for id_ in ("github", "gitlab")
]
OTHER = DataSource(id="coverage", title="Coverage")


def of_kind(kind: str, hosts: list[DataSource]) -> list[DefinitionDocument]:
    return [
        one for one in definition_writes.list_starter_documents([*hosts, OTHER]) if one.kind == kind
    ]


@pytest.mark.parametrize("hosts", [[], HOSTS[:1], HOSTS])
def test_every_document_is_valid_and_fits_the_sources(hosts: list[DataSource]) -> None:
    sources = {source.id: source for source in hosts}
    ids = []
    for _, document in of_kind("check", hosts):
        check = parse_check(document)
        assert definition_writes.find_check_problems(check, CheckContext(sources, {})) == []
        assert [one for one in check_trial.try_check(check, NOON) if not one.passed] == []
        ids.append(check.id)
    [card] = of_kind("scorecard", hosts)
    found = scorecard.parse_scorecard(card.document, ids)
    assert found.checks == set(ids)
    assert len(ids) == 5 + 5 * len(hosts)


def test_a_check_of_a_host_is_about_the_entities_of_that_host() -> None:
    found = {one.document["id"]: one.document for one in of_kind("check", HOSTS)}
    assert found["gitlab-protected-branch"]["appliesTo"] == [
        {"kind": "component", "metadata.annotations.gitlab.com/slug": {"exists": True}}
    ]
    assert found["gitlab-protected-branch"]["rule"]["source"] == "gitlab"


async def test_what_is_adopted_are_drafts_and_what_was_there_stays(database: Database) -> None:
    documents = definition_writes.list_starter_documents(HOSTS[:1])
    mine = {**documents[0].document, "title": "Mine"}
    await database.write(lambda tx: check_store.create(tx, mine, ANN, NOON))
    first = await database.write(
        lambda tx: definition_writes.adopt_starter(tx, documents, ANN, NOON)
    )
    again = await database.write(
        lambda tx: definition_writes.adopt_starter(tx, documents, ANN, NOON)
    )
    assert first.kept == (mine["id"],)
    assert len(first.made) == 10
    assert again.made == ()
    stored = await check_store.everything(database)
    assert {one.draft is not None and one.published is None for one in stored} == {True}
    assert next(one for one in stored if one.id == mine["id"]).draft == mine
    card = await scorecard_store.one(database, "starter")
    assert card is not None
    assert card.published is None


def test_checks_of_facts_that_no_source_has_are_left_out_and_named() -> None:
    left_out = {one.check: one.fact for one in definition_writes.list_missing_facts([OTHER])}
    assert left_out["protected-branch"] == "codehost.branchProtection.enabled"
    assert len(left_out) == 5
    assert definition_writes.list_missing_facts([OTHER, *HOSTS]) == []
