"""The page of one entity: what it says, and what it misses."""

from tests.service import Service, component
from tests.web.entities import WEB, whole
from tests.web.markup import hrefs, links
from tests.web.visiting import signed_in, words


async def test_everything_that_an_entity_says_is_shown(service: Service) -> None:
    visitor = await signed_in(service)
    item = whole(
        system="shop", dependsOn=["resource:db", "component:basket"], replicas=3, beta=True
    )
    await service.push("the set", item)
    page = await visitor.text(WEB)
    text = words(page)
    for expected in (
        "The shop Component service production owned by team-a",
        "component:default/web",
        "What customers see.",
        "System shop",
        "Depends on resource:db component:basket",
        "Replicas 3",
        "Beta yes",
        "Set the set",
        "now by user:tester",
        "acme.example/tier 1",
        "acme.example/board https://board.acme.example/web",
    ):
        assert expected in text
    assert {
        "/catalog/group/default/team-a",
        "/catalog/system/default/shop",
        "/catalog/resource/default/db",
        "/sets/the%20set",
        "/catalog?tag=go",
        "/catalog?kind=component",
    } <= set(hrefs(page))


async def test_only_addresses_of_the_web_are_links(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", whole())
    page = await visitor.text(WEB)
    away = [link for link in links(page) if not link["href"].startswith(("/", "#", "?"))]
    assert {link["href"] for link in away} == {
        "https://runbooks.acme.example/web",
        "https://board.acme.example/web",
    }
    assert {link["rel"] for link in away} == {"noopener noreferrer"}
    assert "A trap javascript:alert(1)" in words(page)
    assert "mailto:team@acme.example" in page


async def test_what_a_kind_misses_is_said(service: Service) -> None:
    visitor = await signed_in(service)
    item = component("web")
    del item["spec"]["lifecycle"]
    await service.push("all", item)
    text = words(await visitor.text(WEB))
    assert "1 problem with this entity spec.lifecycle is required for this kind" in text


async def test_compliance_is_a_checklist_that_says_what_to_do(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    text = words(await visitor.text(WEB))
    assert "Compliance 3 of 9" in text
    assert "Has a title no Give it one in metadata.title." in text
    assert "Names an owner yes Has documentation no Add the annotation" in text
    assert "Owner is a reference yes Owned by a group yes Related to others no Name" in text
    assert "Owner is in the catalog no Push the owner, or name an existing one" in text


async def test_kinds_without_owners_are_not_told_to_have_one(service: Service) -> None:
    visitor = await signed_in(service)
    team = {"apiVersion": "backstage.io/v1alpha1", "kind": "Group", "metadata": {"name": "team-a"},
            "spec": {"type": "team", "children": []}}  # fmt: skip
    await service.push("all", team)
    text = words(await visitor.text("/catalog/group/default/team-a"))
    assert "Compliance 0 of 5" in text
    assert "owner" not in text.partition("Compliance")[2]


async def test_a_profile_is_told_as_a_contact_and_not_as_json(service: Service) -> None:
    visitor = await signed_in(service)
    spec = {"memberOf": [], "profile": {"displayName": "Kim Lee", "email": "kim@shop.example",
            "picture": "https://shop.example/kim.png"}}  # fmt: skip
    user = {"apiVersion": "backstage.io/v1alpha1", "kind": "User", "metadata": {"name": "kim"}}
    await service.push("all", {**user, "spec": spec})
    page = await visitor.text("/catalog/user/default/kim")
    assert "mailto:kim@shop.example" in hrefs(page)
    assert "Kim Lee User kim@shop.example" in words(page)
    assert "Picture https://shop.example/kim.png" in words(page)
    assert "{" not in words(page)
    spec["profile"]["email"] = "javascript:alert(1)"  # type: ignore[index]
    await service.push("all", {**user, "spec": spec})
    page = await visitor.text("/catalog/user/default/kim")
    assert "Email javascript:alert(1)" in words(page)
    assert not [one for one in hrefs(page) if one.startswith(("mailto:", "javascript:"))]


async def test_an_unknown_entity_names_near_ones(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("checkout"), component("checkouts"), component("zebra"))
    page = await visitor.text("/catalog/component/default/chekout", 404)
    assert "Entity not found" in page
    found = [href for href in hrefs(page) if href.startswith("/catalog/component")]
    assert found == [
        "/catalog/component/default/checkout",
        "/catalog/component/default/checkouts",
    ]
    other = await visitor.text("/catalog/resource/elsewhere/checkout", 404)
    assert "/catalog/component/default/checkout" in hrefs(other)
    for path in ("relations", "raw", "raw.json", "facts/deliveries", "facts/deliveries/onCall"):
        await visitor.text(f"/catalog/component/default/nowhere/{path}", 404)


async def test_an_owner_that_is_not_in_the_catalog_leads_to_what_it_owns(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("checkout", owner="team-gone"))
    page = await visitor.text("/catalog/group/default/team-gone", 404)
    [owned] = [href for href in hrefs(page) if href.startswith("/catalog?owner=")]
    assert "/catalog/component/default/checkout" in hrefs(await visitor.text(owned))
    other = await visitor.text("/catalog/group/default/nobody", 404)
    assert not [href for href in hrefs(other) if "owner=" in href]


async def test_an_entity_that_is_too_large_for_yaml_is_there_as_json(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web", notes=["x" * 1_000] * 1_100))
    answer = await visitor.open("/catalog/component/default/web/raw.yaml")
    assert answer.status_code == 501
    assert "take its JSON" in answer.text
    answer = await visitor.open("/catalog/component/default/web/raw.json")
    assert answer.status_code == 200
    assert len(answer.json()["spec"]["notes"]) == 1_100
