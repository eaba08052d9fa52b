"""The pages of sets: what is in them, what each push changed, and restoring."""

import re
from html import unescape
from typing import Any

import pytest

from tests.service import PUSH, Service, component, resource
from tests.web.visiting import browser, signed_in, words

HOSTILE = '<script>alert("x")</script>'


async def test_without_sets_the_page_says_how_to_push_one(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/sets")
    assert "No set has any entities yet" in page
    assert "factbook push services catalog.yaml" in page
    assert "http://127.0.0.1:8000" in page


async def test_a_push_is_seen_at_once(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("cloud accounts", component("web"), resource("db"))
    page = await visitor.text("/sets")
    assert "1 set with 2 entities" in words(page)
    assert 'href="/sets/cloud%20accounts"' in page
    items = await visitor.text("/sets/cloud%20accounts")
    assert 'href="/catalog/component/default/web"' in items
    assert "revision 1" in items


async def test_who_pushed_is_a_link_only_where_the_catalog_has_them(service: Service) -> None:
    person = {"apiVersion": "backstage.io/v1alpha1", "kind": "User", "metadata": {"name": "ada"}}
    await service.push("shop", component("web"))
    token = await service.token(owner="user:default/ada")
    async with service.client(token) as http:
        items = [person | {"spec": {"memberOf": []}}, component("api")]
        assert (await http.put(f"{PUSH}/sets/people", json={"items": items})).is_success
    visitor = await signed_in(service, "kim")
    for path in ("/sets", "/sets/shop", "/sets/shop/revisions", "/sets/shop/revisions/1"):
        html = await visitor.text(path)
        assert "user:tester" in words(html), path
        assert "/catalog/user/default/tester" not in html, path
    assert "/catalog/user/default/tester" not in await visitor.text(
        "/catalog/component/default/web"
    )
    for path in ("/sets", "/sets/people", "/sets/people/revisions", "/sets/people/revisions/1"):
        assert 'href="/catalog/user/default/ada"' in await visitor.text(path), path
    assert 'href="/catalog/user/default/ada"' in await visitor.text(
        "/catalog/component/default/api"
    )


async def test_what_a_revision_removed_is_no_link(service: Service) -> None:
    await service.push("shop", component("web"), component("api"))
    await service.push("shop", component("web"))
    html = await (await signed_in(service)).text("/sets/shop/revisions/2")
    assert "component:api" in words(html)
    assert "/catalog/component/default/api" not in html


async def test_items_come_in_pages_each_once(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("many", *(component(f"c{number:03}") for number in range(250)))
    found, path = [], "/sets/many"
    while path:
        page = await visitor.text(path)
        found += [line.split('"')[0] for line in page.split("/catalog/component/default/")[1:]]
        after = page.split('rel="next"')[0].rpartition('href="')[2].split('"')[0]
        path = after if 'rel="next"' in page else ""
    assert found == [f"c{number:03}" for number in range(250)]


async def test_a_revision_shows_its_difference(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"), component("old"))
    await service.push("all", component("web", lifecycle="deprecated"), component("new"))
    await service.push("all", component("web", lifecycle="gone"))
    page = words(await visitor.text("/sets/all/revisions/2"))
    assert "1 added, 1 updated, 1 removed" in page
    assert '- "lifecycle": "production"' in page
    assert '+ "lifecycle": "deprecated"' in page
    assert "component:old removed" in page
    assert "component:new added" in page
    assert '"gone"' not in page


@pytest.mark.slow
async def test_the_changes_of_a_revision_are_filtered_by_name_and_kind(service: Service) -> None:
    visitor = await signed_in(service)
    many = [component(f"c{number:04}") for number in range(2_100)]
    await service.push("all", *many, component("old"), component("web"))
    await service.push("all", *many[:-1], component("web", lifecycle="gone"), component("new"))

    async def shown(revision: int, **query: Any) -> list[str]:
        found, path, asked = [], f"/sets/all/revisions/{revision}", query
        while path:
            page = await visitor.text(path, **asked)
            found += re.findall(r'<span class="wrap">component:(\w+)</span>', page)
            path = unescape("".join(re.findall(r'href="([^"]+)" rel="next"', page)))
            asked = {}
        return found

    assert await shown(2) == ["c2099", "new", "old", "web"]
    assert await shown(2, change="removed") == ["c2099", "old"]
    assert await shown(2, change="added") == ["new"]
    assert await shown(2, change="updated") == ["web"]
    assert await shown(2, q="component:W") == ["web"]
    assert await shown(2, q="default/o", change="removed") == ["old"]
    assert await shown(2, change="nothing") == ["c2099", "new", "old", "web"]
    # Behind the first two thousand, none of which is one.
    assert await shown(1, q="web") == ["web"]
    assert len(await shown(1, q="c20")) == 100
    page = await visitor.text("/sets/all/revisions/1", q="web")
    assert "No matches so far; the revision has more changes." in words(page)
    assert "No such change" in words(await visitor.text("/sets/all/revisions/2", q="nothing"))


async def test_a_set_may_be_named_as_the_sets_of_importers_begin(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("import", component("web"))
    assert "component:web added" in words(await visitor.text("/sets/import/revisions/1"))


async def test_a_revision_is_restored_and_recorded(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"), component("old"))
    await service.push("all", component("web"))
    await visitor.text("/sets/all/revisions/1")
    page = words(await visitor.done("/sets/all/revisions/1/restore", seen="2"))
    assert "The set was restored to revision 1: 1 added, 0 updated, 0 removed." in page
    assert "restores 1" in page
    entity = await service.catalog("component:default/old")
    assert entity is not None
    [item] = (await service.http.get("/api/catalog/factbook-entities/entities?set=all")).json()[
        "items"
    ][1:]
    assert item["updatedBy"] == "user:default/ada"
    audit = (await service.http.get("/api/access/v1/audit?action=set.restore")).json()
    assert [each["actor"] for each in audit["records"]] == ["user:default/ada"]


async def test_what_was_pushed_since_the_page_was_shown_is_not_undone(service: Service) -> None:
    visitor = await signed_in(service)
    for names in (("a", "b"), ("a",), ("a", "c")):
        await service.push("all", *(component(name) for name in names))
    await visitor.text("/sets/all/revisions/1")
    answer = await visitor.send("/sets/all/revisions/1/restore", seen="2")
    assert answer.status_code == 412
    assert "Not restored" in answer.text
    assert await service.catalog("component:default/c") is not None


async def test_what_another_set_holds_is_only_taken_when_asked_for(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("one", component("web"))
    await service.push("one")
    await service.push("two", component("web"))
    await visitor.text("/sets/one/revisions/1")
    answer = await visitor.send("/sets/one/revisions/1/restore", seen="2")
    assert answer.status_code == 409
    assert "component:default/web" in answer.text
    await visitor.done("/sets/one/revisions/1/restore", seen="2", take="yes")
    assert "component:web" in words(await visitor.text("/sets/one"))


async def test_a_set_that_was_emptied_can_still_be_found(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("gone", component("web"))
    await service.push("gone")
    assert "Emptied sets" in await visitor.text("/sets")
    assert "This set has no items now" in await visitor.text("/sets/gone")
    await visitor.text("/sets/gone/revisions/1")
    await visitor.done("/sets/gone/revisions/1/restore", seen="2")
    assert await service.catalog("component:default/web") is not None


async def test_a_viewer_sees_all_of_it_and_restores_nothing(service: Service) -> None:
    visitor = await signed_in(service, "vic", "viewer")
    await service.push("all", component("web"), component("old"))
    await service.push("all", component("web"))
    page = await visitor.text("/sets/all/revisions/1")
    assert "Restore" not in page
    answer = await visitor.send("/sets/all/revisions/1/restore", seen="2")
    assert answer.status_code == 403
    assert await service.catalog("component:default/old") is None


async def test_nobody_sees_a_set_without_signing_in(service: Service) -> None:
    await service.push("all", component("web"))
    for path in ("/sets", "/sets/all", "/sets/all/revisions", "/sets/all/push"):
        answer = await browser(service).open(path)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/sign-in?next=")


async def test_what_is_not_there_is_a_page_that_says_so(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    for path in [
        "/sets/none",
        "/sets/none/revisions",
        "/sets/all/revisions/9",
        "/sets/all/revisions/-1",
        "/sets/all/revisions/99999999999999999999",
        "/sets/all/revisions/%C2%B2",
    ]:
        with subtests.test(path=path):
            assert "Not found" in await visitor.text(path, status=404)


async def test_an_address_that_is_cut_off_is_refused_or_begins_anew(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    for after in ["x", "²", "9" * 30, "--1", ""]:
        with subtests.test(after=after):
            answer = await visitor.open("/sets/all", after=after)
            assert answer.status_code in {200, 400}


async def test_what_sets_are_called_and_hold_stays_text(service: Service) -> None:
    visitor = await signed_in(service)
    name = "<img src=x onerror=alert(1)>'\"&"
    hostile = component("web") | {"spec": {"type": HOSTILE, "owner": HOSTILE, "lifecycle": "x"}}
    path = "/sets/" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%27%22%26"
    answer = await service.push("%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%27%22%26", hostile)
    assert answer.status_code == 200, answer.text
    assert answer.json()["set"] == name
    for where in ("", "/revisions", "/revisions/1", "/push"):
        page = await visitor.text(f"{path}{where}")
        assert "<img src=x" not in page
        assert "<script>alert" not in page
    assert "'<img src=x onerror=alert(1)>'\\''" in words(await visitor.text(f"{path}/push"))
    assert "<img src=x" not in await visitor.text("/sets")
