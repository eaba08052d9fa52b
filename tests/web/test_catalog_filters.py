"""Filters of the catalog's page beyond text: whose entities are, what they are, how they stand."""

from typing import Any

import pytest

from tests.api.checking import SCORECARDS, check, evaluated, put, scorecard
from tests.service import Service, component, resource
from tests.web.markup import hrefs
from tests.web.test_catalog import named, rows
from tests.web.visiting import signed_in, words


def group(name: str, **spec: Any) -> dict[str, Any]:
    """A group of people."""
    return named(name, "Group", spec={"type": "team", "children": []} | spec)


async def test_the_list_begins_with_components(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"), resource("account"))
    page = await visitor.text("/catalog")
    assert rows(page) == ["web"]
    assert "1 component · All 2 entities" in words(page)
    assert "/catalog?kind=" in hrefs(page)
    assert rows(await visitor.text("/catalog?kind=")) == ["account", "web"]


async def test_an_address_without_a_kind_means_every_kind(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"), resource("account"))
    for query in ["kind=", "order=name", "owner=team-a", "count=exact", "q="]:
        with subtests.test(query=query):
            assert rows(await visitor.text(f"/catalog?{query}")) == ["account", "web"]


async def test_without_components_the_list_begins_with_everything(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", resource("account"))
    assert rows(await visitor.text("/catalog")) == ["account"]


@pytest.mark.both_databases
async def test_components_are_found_by_lifecycle_and_type(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push(
        "all",
        component("web"),
        component("old", lifecycle="Deprecated"),
        component("lib", type="library"),
    )
    page = await visitor.text("/catalog?lifecycle=deprecated")
    assert rows(page) == ["old"]
    assert 'value="deprecated" selected' in page
    assert rows(await visitor.text("/catalog?lifecycle=production&type=service")) == ["web"]
    assert rows(await visitor.text("/catalog?type=Library")) == ["lib"]


@pytest.mark.both_databases
async def test_a_part_of_a_system_is_found_by_its_name(service: Service) -> None:
    visitor = await signed_in(service)
    system = named("shop", "System", spec={"owner": "team-a"})
    other = named("shop-old", "System", spec={"owner": "team-a"})
    await service.push(
        "all",
        system,
        other,
        component("web", system="shop"),
        component("old", system="shop-old"),
        component("else", system="nowhere"),
    )
    assert rows(await visitor.text("/catalog?system=shop")) == ["web"]
    assert rows(await visitor.text("/catalog?system=system:default/shop")) == ["web"]
    assert rows(await visitor.text("/catalog?system=sho")) == ["old", "web"]
    assert rows(await visitor.text("/catalog?system=nowhere")) == ["else"]
    assert "There are no matching systems." in await visitor.text("/catalog?system=nowh")


@pytest.mark.both_databases
async def test_a_part_of_an_owners_name_is_enough(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push(
        "all",
        group("payments"),
        component("pay", owner="payments"),
        component("refund", owner="payments-refunds"),
        component("own", owner="user:default/paymaster"),
        component("web"),
    )
    assert rows(await visitor.text("/catalog?owner=pay&kind=component")) == ["own", "pay", "refund"]
    assert rows(await visitor.text("/catalog?owner=refunds")) == ["refund"]
    assert rows(await visitor.text("/catalog?owner=PAYMENTS")) == ["pay"]
    assert rows(await visitor.text("/catalog?owner=group:default/payments")) == ["pay"]
    assert rows(await visitor.text("/catalog", owner="pay%")) == []


async def test_very_many_owners_are_said_to_be_cut(service: Service) -> None:
    visitor = await signed_in(service)
    items = [component(f"c{number}", owner=f"team-{number:02}") for number in range(60)]
    await service.push("all", *items)
    page = words(await visitor.text("/catalog?owner=team-"))
    assert "50 entities found" in page
    assert "Only the first 50 matching owners are used. Type more." in page
    assert rows(await visitor.text("/catalog?owner=team-59")) == ["c59"]


@pytest.mark.both_databases
async def test_the_beginning_of_a_tag_is_enough(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push(
        "all", named("a", tags=["go"]), named("b", tags=["golang"]), named("c", tags=["mongo"])
    )
    assert rows(await visitor.text("/catalog?tag=go")) == ["a"]
    assert rows(await visitor.text("/catalog?tag=gol")) == ["b"]
    assert rows(await visitor.text("/catalog?tag=g")) == ["a", "b"]
    assert "There are no matching tags." in await visitor.text("/catalog?tag=x")


@pytest.mark.both_databases
async def test_entities_without_an_owner_are_found(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push(
        "all",
        group("team-a"),
        component("web"),
        named("orphan", spec={"type": "service", "lifecycle": "production"}),
        named("lost", spec={"type": "service", "owner": "gone"}),
        named("thing", "Unheard", spec={}),
    )
    assert rows(await visitor.text("/catalog?ownership=none")) == ["orphan"]
    assert rows(await visitor.text("/catalog?ownership=missing")) == ["lost"]
    await service.push("later", group("gone"))
    assert rows(await visitor.text("/catalog?ownership=missing")) == []


@pytest.mark.both_databases
async def test_references_that_lead_nowhere_are_listed_with_who_pushed_them(
    service: Service,
) -> None:
    visitor = await signed_in(service)
    spec = {"owner": "gone", "system": "old", "dependsOn": ["component:web", "resource:db"]}
    await service.push("all", group("team-a"), component("web"), named("shop", spec=spec))
    assert rows(await visitor.text("/catalog?dangling=any")) == ["shop"]
    assert rows(await visitor.text("/catalog?dangling=domain")) == []
    page = await visitor.text("/catalog?dangling=dependsOn")
    assert "dependsOn: resource:default/db user:tester set all" in words(page)
    page = await visitor.text("/catalog?ownership=missing")
    assert "owner: group:default/gone user:tester set all" in words(page)
    head, line = (await visitor.text("/catalog/export?dangling=any")).splitlines()
    broken = "owner=group:default/gone dependsOn=resource:default/db system=system:default/old"
    assert line.split(",")[head.split(",").index("dangling") :] == [
        broken,
        "all",
        "user:default/tester",
    ]
    links = hrefs(await visitor.text("/"))
    assert {"/catalog?dangling=any", "/catalog?ownership=missing"} <= set(links)
    assert "has to be one of" in await visitor.text("/catalog?dangling=dependson", 400)


@pytest.mark.both_databases
async def test_what_groups_of_a_person_own_is_theirs_with_all_below(service: Service) -> None:
    await service.push(
        "all",
        group("department", children=["team-b"]),
        group("team-b", members=[]),
        named("vic", "User", spec={"memberOf": ["department"]}),
        component("above", owner="department"),
        component("below", owner="team-b"),
        component("own", owner="user:default/vic"),
        component("other", owner="team-c"),
    )
    visitor = await signed_in(service, "vic", "viewer")
    assert rows(await visitor.text("/catalog?ownership=mine")) == ["above", "below", "own"]
    stranger = await signed_in(service, "eve", "viewer")
    page = await stranger.text("/catalog?ownership=mine")
    assert rows(page) == []
    assert "user:eve is not in any group in the catalog." in page


@pytest.mark.both_databases
async def test_entities_are_found_by_their_level(service: Service) -> None:
    visitor = await signed_in(service)
    good = [f"good-{number}" for number in range(10)]
    await service.push("all", *(named(name, title="Good") for name in good), named("bad"))
    rule = {"source": "entity", "fact": "metadata.title", "operator": "isKnown"}
    answer = await put(service, check(rule=rule), publish=True)
    assert answer.status_code == 200, answer.text
    made = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=scorecard())
    assert made.status_code == 200, made.text
    await evaluated(service)
    page = await visitor.text("/catalog?kind=component")
    assert 'value="readiness/none"' in page
    await visitor.text("/catalog?level=readiness/platinum", 400)
    await visitor.text("/catalog?level=nothing", 400)
    assert rows(await visitor.text("/catalog?level=readiness/none")) == ["bad"]
    assert rows(await visitor.text("/catalog?level=readiness/silver")) == good


async def test_an_unknown_word_of_ownership_is_refused(service: Service) -> None:
    visitor = await signed_in(service)
    assert "The ownership has to be one of mine, none, missing" in words(
        await visitor.text("/catalog?ownership=theirs", 400)
    )
