"""The starter scorecard over HTTP: shown, and adopted as drafts that change nothing."""

import pytest

from factbook.facts.schema import CODEHOST, SECURITY
from factbook.integrations.integration import list_shape_facts
from tests.api.checking import CHECKS, RESULTS, SCORECARDS, STARTER, check, evaluated
from tests.api.defining import SOURCES
from tests.service import Service, component

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def define_host(service: Service) -> None:
    """A source with the facts of a code host."""
    facts = (*list_shape_facts(CODEHOST), *list_shape_facts(SECURITY))
    source = {
        "id": "forge",
        "title": "Forge",
        "handlerDefinition": {"type": "push", "config": {"id": "forge"}},
        "schema": {one.name: {"type": one.type} for one in facts},
    }
    answer = await service.http.post(SOURCES, json=source)
    assert answer.status_code == 201, answer.text
    assert (await service.http.post(f"{SOURCES}/forge/publish")).status_code == 200


async def test_the_starter_is_shown_with_what_is_left_out_and_nothing_is_stored(
    service: Service,
) -> None:
    found = (await service.http.get(STARTER)).json()
    assert found["checks"][0]["id"] == "catalog-has-owner"
    assert found["scorecards"][0]["id"] == "starter"
    assert found["missing"][0] == {
        "check": "protected-branch",
        "title": "The default branch is protected",
        "fact": "codehost.branchProtection.enabled",
    }
    await define_host(service)
    more = (await service.http.get(STARTER)).json()
    assert more["missing"] == []
    assert len(more["checks"]) == len(found["checks"]) + 5
    assert (await service.http.get(CHECKS)).json()["totalCount"] == 0


async def test_what_is_adopted_is_off_until_it_is_published_and_then_unknown_not_failing(
    service: Service,
) -> None:
    http = service.http
    await define_host(service)
    await service.push("shop", component("web", owner="group:default/shop"))
    mine = check(
        "catalog-has-owner", rule={"source": "entity", "fact": "spec.owner", "operator": "isKnown"}
    )
    assert (await http.post(CHECKS, json=mine)).status_code == 201
    adopted = (await http.post(STARTER)).json()
    assert adopted["kept"] == ["catalog-has-owner"]
    assert len(adopted["made"]) == 10
    card = (await http.get(f"{SCORECARDS}/starter")).json()
    assert card["draft"]
    assert (await http.get(RESULTS)).json()["results"] == []
    again = (await http.post(STARTER)).json()
    assert (again["made"], len(again["kept"])) == ([], 11)
    published = await http.post(f"{CHECKS}/forge-protected-branch/publish")
    assert published.status_code == 200, published.text
    await evaluated(service)
    found = (await http.get(f"{RESULTS}/forge-protected-branch")).json()
    assert (found["unknown"], found["failing"]) == (1, 0)
