"""The paths of the community's Backstage plugin, in the forms in which its client reads them."""

from typing import Any

import pytest

from tests.api.checking import OWNED, check, evaluated, put, with_source
from tests.api.defining import item, push, refusal
from tests.conftest import StartService
from tests.service import Service, component

PLUGIN = "/api/tech-insights"
WEB, API, OLD = (f"component:default/{name}" for name in ("web", "api", "old"))


@pytest.fixture
async def service(start: StartService) -> Service:
    service = await start()
    await with_source(service)
    await service.push("shop", *(component(name) for name in ("web", "api", "old")))
    await push(service, item(WEB, lines=90), item(API, lines=10))
    fix = {"link": "https://ci.test/{{ metadata.name }}"}
    await put(service, check(fix=fix, description="Tests matter."), publish=True)
    await put(service, check("apis", rule=OWNED, appliesTo={"kind": "api"}), publish=True)
    await put(service, check("draft"))
    await evaluated(service)
    return service


async def run(service: Service, name: str, **body: Any) -> Any:
    answer = await service.http.post(f"{PLUGIN}/checks/run/default/component/{name}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_checks_in_effect_are_listed_as_the_plugin_reads_them(service: Service) -> None:
    found = (await service.http.get(f"{PLUGIN}/checks")).json()
    assert [one["id"] for one in found] == ["apis", "covered"]
    shown = found[1]
    assert (shown["name"], shown["factIds"]) == ("Tests cover enough", ["coverage"])
    assert shown["type"] == "json-rules-engine"


async def test_a_run_is_true_false_or_null_and_never_guesses(service: Service) -> None:
    [web] = await run(service, "web")
    assert (web["result"], web["facts"]["lines"]["value"]) == (True, 90)
    assert web["facts"]["lines"]["type"] == "integer"
    [api] = await run(service, "api", checks=["covered", "none"])
    assert (api["result"], api["check"]["links"][0]["url"]) == (False, "https://ci.test/api")
    [old] = await run(service, "old", checks=None)
    assert old["result"] is None
    assert old["check"]["description"] == "Unknown: never-collected. Tests matter."
    assert (
        await service.http.post(f"{PLUGIN}/checks/run/default/component/none")
    ).status_code == 404


async def test_many_entities_are_run_at_once(service: Service) -> None:
    names = ("web", "none")
    entities = [{"kind": "Component", "namespace": "default", "name": name} for name in names]
    answer = await service.http.post(f"{PLUGIN}/checks/run", json={"entities": entities})
    web, none = answer.json()
    assert (web["entity"], len(web["results"])) == (WEB, 1)
    assert none == {"entity": "component:default/none", "results": []}
    many = {"entities": entities * 400}
    assert (await service.http.post(f"{PLUGIN}/checks/run", json=many)).status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_results_of_one_run_are_bounded(service: Service) -> None:
    for number in range(66):
        await put(service, check(f"more-{number}", rule=OWNED), publish=True)
    await evaluated(service)
    entities = [{"kind": "Component", "name": "none"}] * 750
    answer = await service.http.post(f"{PLUGIN}/checks/run", json={"entities": entities})
    assert "750 entities with 68 checks are more than 50,000 results" in refusal(answer, 400)
    some = {"entities": entities, "checks": ["covered", "apis", "none"]}
    assert (await service.http.post(f"{PLUGIN}/checks/run", json=some)).status_code == 200


async def test_facts_and_their_schemas_are_read_by_ids(service: Service) -> None:
    query = {"entity": WEB, "ids[0]": "coverage"}
    found = (await service.http.get(f"{PLUGIN}/facts/latest", params=query)).json()
    assert found["coverage"]["facts"] == {"lines": 90}
    assert found["coverage"]["timestamp"] == "2026-11-21T12:00:00.000+00:00"
    other = {"entity": WEB, "ids": "none"}
    assert (await service.http.get(f"{PLUGIN}/facts/latest", params=other)).json() == {}
    times = {
        **query,
        "startDatetime": "2026-01-01T00:00:00Z",
        "endDatetime": "2027-01-01T00:00:00Z",
    }
    past = (await service.http.get(f"{PLUGIN}/facts/range", params=times)).json()
    assert [one["facts"] for one in past["coverage"]] == [{"lines": 90}]
    [schema] = (await service.http.get(f"{PLUGIN}/fact-schemas?ids=coverage")).json()
    assert schema["lines"] == {"type": "integer", "description": "Covered lines."}
    assert len((await service.http.get(f"{PLUGIN}/fact-schemas")).json()) > 1
    assert (await service.http.get(f"{PLUGIN}/facts/latest")).status_code == 400
