"""get-entity-facts: of the catalog's own sources, and of one whose facts are stored."""

import re
from typing import Any

import pytest

from factbook.clock import HOUR
from factbook.integrations import SOURCES
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.tools.checks import TIME, structured
from tests.tools.sources import COVERAGE, DRAFT, TREE, record

TOOL = "get-entity-facts"
REF = "component:default/payments"
EVERY_TYPE = {
    "lines": 1200,
    "share": 81.5,
    "tool": "größe",
    "green": True,
    "ranAt": "2026-11-21T06:00:00Z",
    "branches": ["main", "next"],
    "raw": {"deep": [None, {"x": 1.5}]},
}


@pytest.fixture
async def filled(start: StartService) -> Service:
    service = await start(sources=[*SOURCES, COVERAGE, DRAFT, TREE])
    entities = component("payments"), resource("payments", title="Paid"), resource("other")
    answer = await service.push("first", *entities)
    assert answer.status_code == 200, answer.text
    return service


async def ask(service: Service, source: str = "coverage", **arguments: Any) -> dict[str, Any]:
    given = {"name": "payments", **arguments}
    return structured(TOOL, await service.ask(TOOL, dataSourceId=source, **given))


async def every(service: Service) -> dict[str, Any]:
    """What the other tool says of the one entity that it has facts of."""
    tool = "get-all-entities-facts"
    [found] = structured(tool, await service.ask(tool, dataSourceId="coverage"))["entities"]
    return dict(found)


@pytest.mark.spec("tools.entities-facts.result", "facts.catalog-facts-are-current")
async def test_the_catalogs_own_facts_about_an_entity_have_the_seeds_shape(
    filled: Service,
) -> None:
    found = await ask(filled, "entity-metadata")
    assert found == {
        "dataSourceId": "entity-metadata",
        "dataSourceTitle": "Entity metadata",
        "entityRef": REF,
        "facts": {"hasTitle": False, "hasDescription": False, "hasTags": False, "hasOwner": True},
        "timestamp": "2026-11-21T12:00:00.000+00:00",
    }


@pytest.mark.spec("tools.entities-facts.defaults")
async def test_namespace_and_kind_have_the_seeds_defaults(filled: Service) -> None:
    away = component("payments")
    away["metadata"] |= {"namespace": "away", "tags": ["x"]}
    await filled.push("second", away)
    source = "entity-metadata"
    assert (await ask(filled, source))["entityRef"] == REF
    other = await ask(filled, source, kind="resource")
    assert (other["entityRef"], other["facts"]["hasTitle"]) == ("resource:default/payments", True)
    other = await ask(filled, source, namespace="away")
    assert (other["entityRef"], other["facts"]["hasTags"]) == ("component:away/payments", True)


@pytest.mark.spec("tools.entities-facts.defaults")
async def test_case_blanks_and_references_as_names_are_understood(
    filled: Service, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str]] = [
        {"name": "PAYMENTS", "kind": "Resource", "namespace": "Default"},
        {"name": " payments ", "kind": " resource "},
        {"name": "resource:payments"},
        {"name": "Resource:default/Payments"},
        {"name": "default/payments", "kind": "resource"},
    ]
    for arguments in cases:
        with subtests.test(arguments=arguments):
            found = await ask(filled, "techdocs", **arguments)
            assert found["entityRef"] == "resource:default/payments"


@pytest.mark.spec("tools.entities-facts.all-facts-of-the-source", "facts.types-are-checked")
async def test_stored_facts_of_every_type_come_back_as_they_were_written(filled: Service) -> None:
    await record(filled, REF, EVERY_TYPE)
    found = await ask(filled)
    assert found["facts"] == EVERY_TYPE
    assert "draft" not in found
    assert re.fullmatch(TIME, found["timestamp"])


@pytest.mark.spec("facts.never-collected-is-empty")
async def test_an_entity_never_collected_has_no_facts_and_no_timestamp(filled: Service) -> None:
    await record(filled, "resource:default/payments", {"lines": 1})
    assert await ask(filled) == {
        "dataSourceId": "coverage",
        "dataSourceTitle": "Test coverage",
        "entityRef": REF,
        "facts": {},
        "unknownReasons": {"*": "never-collected"},
    }
    left_out = await ask(filled, kind="resource", name="other")
    assert left_out["unknownReasons"]["*"].startswith("no-annotation: the entityFilter")


@pytest.mark.spec("facts.timestamp-is-the-last-good-write", "facts.latest-is-one-row")
async def test_the_latest_write_is_what_is_told_with_its_time(filled: Service) -> None:
    await record(filled, REF, EVERY_TYPE)
    filled.time.advance(HOUR + 7)
    await record(filled, REF, {"lines": 1300})
    filled.time.advance(HOUR)
    found = await ask(filled)
    assert found["facts"] == {"lines": 1300}
    assert found["timestamp"] == "2026-11-21T13:00:00.007+00:00"


@pytest.mark.spec("facts.timestamp-is-the-last-good-write")
async def test_an_entity_of_which_only_failures_are_known_has_no_timestamp(
    filled: Service,
) -> None:
    for reason in ("not-found", "forbidden: may not be read", "no-annotation"):
        filled.time.advance(HOUR)
        await record(filled, REF, {}, reasons={"": reason})
        found = await ask(filled)
        assert found["facts"] == {}
        assert "timestamp" not in found


@pytest.mark.spec("facts.timestamp-is-the-last-good-write")
async def test_a_failure_beside_kept_values_does_not_make_them_newer(filled: Service) -> None:
    await record(filled, REF, {"lines": 7, "tool": "cov"})
    filled.time.advance(HOUR)
    failing = {"": "upstream-error", "tool": "not-found"}
    await record(filled, REF, {}, reasons=failing, passing={""})
    for found in (await ask(filled), await every(filled)):
        assert found["facts"] == {"lines": 7}
        assert found["timestamp"] == "2026-11-21T12:00:00.000+00:00"


@pytest.mark.spec("facts.wrong-type-is-no-value-with-a-reason")
async def test_a_value_of_the_wrong_type_is_not_among_the_facts(filled: Service) -> None:
    await record(filled, REF, {"lines": "1200", "green": 1, "share": 50})
    found = await ask(filled)
    assert found["facts"] == {"share": 50}
    assert (
        found["unknownReasons"]["green"]
        == "bad-definition: schema.green.type: expected a boolean, not an integer"
    )


@pytest.mark.spec("unknown.generic-tools-give-reasons")
async def test_facts_without_a_value_have_the_reason_of_themselves_or_of_what_is_above_them(
    filled: Service,
) -> None:
    values: dict[str, object] = {"repo.files": ["a"], "stars": 3}
    await record(filled, REF, values, TREE, {"repo": "forbidden: needs contents"})
    found = await ask(filled, "tree")
    assert found["facts"] == values
    assert found["unknownReasons"] == {"repo": "forbidden: needs contents"}
    await record(filled, REF, {"stars": 3}, TREE, {"repo.files": "too-large"})
    reasons = {"repo.files": "too-large"} | dict.fromkeys(
        ["repo.about", "repo.owners"], "never-collected"
    )
    assert (await ask(filled, "tree"))["unknownReasons"] == reasons
    await record(filled, REF, {}, TREE, {"": "not-found"})
    assert (await ask(filled, "tree"))["unknownReasons"] == {"*": "not-found"}


async def test_facts_of_a_draft_are_marked(filled: Service) -> None:
    await record(filled, REF, {"lines": 1}, DRAFT)
    assert (await ask(filled, "draft"))["draft"] is True


@pytest.mark.spec("removed.vanishes-from-every-read", "removed.id-and-facts-kept-for-a-while")
async def test_stored_facts_go_and_return_with_their_entity(filled: Service) -> None:
    await record(filled, REF, {"lines": 7})
    await filled.push("first", resource("payments"))
    text = await filled.refusal(TOOL, dataSourceId="coverage", name="payments")
    assert "There is no entity component:default/payments" in text
    await filled.push("first", component("payments"))
    assert (await ask(filled))["facts"] == {"lines": 7}
