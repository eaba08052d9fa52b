"""What a team owns, and what a system or domain contains, with all below."""

import re
from dataclasses import replace
from typing import Any

import pytest

from factbook.catalog.store import entity_query
from factbook.checks import scorecard_figures
from factbook.clock import DAY
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES as CATALOGS
from tests.api.defining import item, push
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.graded import with_checks
from tests.web.knowing import DELIVERIES, write
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.visiting import signed_in, words

VERSION = "backstage.io/v1alpha1"
DEPARTMENT = "/catalog/group/default/department"


def thing(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """An entity of a kind."""
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


ENTITIES = (
    component("web", owner="team-a", system="shop"),
    component("api", owner="team-b", system="shop"),
    component("old", owner="department"),
    component("else", owner="others"),
    thing("Group", "department", type="department", children=["team-a"]),
    thing("Group", "team-a", type="team", children=[]),
    thing("Group", "team-b", type="team", parent="department", children=[]),
    thing("System", "shop", owner="team-a", domain="retail"),
    thing("Domain", "retail", owner="department"),
)


async def test_a_team_shows_what_it_and_the_groups_below_own(service: Service) -> None:
    await with_checks(service, *ENTITIES, lines=40)
    await push(service, item("component:default/api", lines=99, tool="cov"))
    visitor = await signed_in(service)
    page = await visitor.text(DEPARTMENT)
    text = words(page)
    assert is_harmless(page)
    assert "Entity Readiness Failing Unknown api Silver 0 0" in text
    assert "old Bronze 0 3" in text
    assert "web Bronze 2 1" in text
    assert "/catalog/component/default/else" not in hrefs(page)
    assert {"/catalog/component/default/web#checks", f"{DEPARTMENT}/contents"} <= set(hrefs(page))
    own = words(await visitor.text(f"{DEPARTMENT}/contents"))
    assert "Owns 5 entities, including subteams" in own


async def test_the_scorecards_of_a_team_are_those_of_all_below(service: Service) -> None:
    await with_checks(service, *ENTITIES, lines=40)
    await push(service, item("component:default/api", lines=99, tool="cov"))
    page = await (await signed_in(service)).text(DEPARTMENT)
    text = words(page)
    found = re.search(
        r"Scorecards of all below as of now Readiness (\d+)% mean score of \d of 5 entities", text
    )
    assert found is not None
    assert "Silver 1 Bronze 4 no level 0" in text
    assert "Team below Readiness team-a" in text
    query = "team=group%3Adefault%2Fdepartment"
    assert f"/scorecards/readiness/entities?{query}&level=silver" in hrefs(page)
    assert f"/scorecards/readiness?{query}" in hrefs(page)


@pytest.mark.slow
@pytest.mark.both_databases
async def test_a_system_and_a_domain_show_what_they_contain(service: Service) -> None:
    await with_checks(service, *ENTITIES, lines=40)
    visitor = await signed_in(service)
    shop = await visitor.text("/catalog/system/default/shop/contents")
    assert "Contains 2 entities · as of now Entity" in words(shop)
    retail = await visitor.text("/catalog/domain/default/retail/contents")
    assert "Contains 3 entities, including subdomains" in words(retail)
    for page in (shop, retail):
        assert "web Bronze 2 1" in words(page)
    overview = await visitor.text("/catalog/domain/default/retail")
    assert "Silver 0 Bronze 2 no level 0" in words(overview)
    levels = [path for path in hrefs(overview) if "/contents?level=" in path]
    counted = [words(await visitor.text(path)) for path in levels]
    assert ["Contains 0 entities" in counted[0], "Contains 2 entities" in counted[1]] == [True] * 2
    assert "level: readiness/bronze" in counted[1]
    unknown = "/catalog/domain/default/retail/contents?level=readiness/gone"
    await visitor.text(unknown, 400)


async def test_many_entities_are_paged_each_once(service: Service) -> None:
    await service.push("all", *(component(f"c{number:03}") for number in range(130)),
                       thing("Group", "team-a", type="team", children=[]))  # fmt: skip
    visitor, path = await signed_in(service), "/catalog/group/default/team-a/contents"
    found = list[str]()
    while path:
        page = await visitor.text(path)
        found += re.findall(r'title="component:default/(c\d+)"', page)
        link = re.search(r'href="([^"]+)" rel="next"', page)
        path = link[1].replace("&amp;", "&") if link else ""
    assert found == [f"c{number:03}" for number in range(130)]


async def test_groups_below_each_other_are_counted_once(service: Service) -> None:
    await service.push(
        "all",
        component("web", owner="a"),
        thing("Group", "a", type="team", parent="b", children=[]),
        thing("Group", "b", type="team", parent="a", children=[]),
    )
    text = words(await (await signed_in(service)).text("/catalog/group/default/b/contents"))
    assert "Owns 1 entity, including subteams Entity Failing Unknown web — not checked" in text


async def test_the_trend_of_a_team_is_told(service: Service) -> None:
    await with_checks(service, *ENTITIES, lines=40)
    database = service.state.database
    await database.write(
        lambda transaction: scorecard_figures.record_trends(transaction, service.time())
    )
    service.time.advance(2 * DAY)
    await push(service, item("component:default/web", lines=99, tool="cov"))
    text = words(await (await signed_in(service)).text("/catalog/group/default/team-a"))
    assert re.search(r"mean score of \d of 2 entities, \+\d+ points in 30 days", text)


async def test_other_kinds_have_no_such_page(service: Service) -> None:
    await service.push("all", component("web"))
    visitor = await signed_in(service)
    await visitor.text("/catalog/component/default/web/contents", 404)
    team = thing("Group", "team-a", type="team", children=[])
    team["metadata"]["title"] = HOSTILE
    await service.push("teams", team, component("x", owner="team-a"))
    for query in ("", "?after=zzz", f"?after={HOSTILE[:20]}"):
        assert is_harmless(await visitor.text(f"/catalog/group/default/team-a/contents{query}"))
    await visitor.text("/catalog/group/default/team-a/contents?after=%00", 400)


@pytest.mark.both_databases
async def test_of_very_many_entities_the_pages_are_in_order_too(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entity_query, "COUNT_BOUND", 100)
    monkeypatch.setattr(entity_query, "MORE_THAN_BOUND", 101)
    others = [component(f"d{number:03}", owner="team-b") for number in range(30)]
    await service.push("all", *(component(f"c{number:03}") for number in range(130)), *others,
                       thing("Group", "team-a", type="team", children=[]))  # fmt: skip
    visitor = await signed_in(service)
    first = await visitor.text("/catalog/group/default/team-a/contents")
    assert "Owns more than 100 entities" in words(first)
    link = re.search(r'href="([^"]+)" rel="next"', first)
    assert link is not None
    second = await visitor.text(link[1])
    found = re.findall(r'title="component:default/(\w\d+)"', first + second)
    assert found == [f"c{number:03}" for number in range(100)]


async def test_findings_stand_beside_each_entity_as_far_as_they_are_known(
    start: StartService,
) -> None:
    schema = tuple(Fact(f"security.scannerIssues.{one}", "integer") for one in ("critical", "high"))
    scanner = replace(DELIVERIES, id="scanner", title="Scanner", schema=schema)
    service = await start(sources=[*CATALOGS, scanner])
    await service.push("all", *ENTITIES)
    for name, facts in (("web", {schema[0].name: 3, schema[1].name: 0}), ("api", {})):
        ref = f"component:default/{name}"
        await write(service, ref, facts, source=scanner, reasons={"": "rate-limited: 429"})
    page = await (await signed_in(service)).text(f"{DEPARTMENT}/contents")
    text = words(page)
    assert "Unknown Critical security issues High security issues api" in text
    assert "api — not checked — not checked unknown unknown" in text
    assert "old — not checked — not checked — no data source — no data source" in text
    assert "web — not checked — not checked 3 0" in text
    path = "/catalog/component/default/web/facts/scanner/security.scannerIssues.critical"
    assert path in hrefs(page)
