"""The catalog's page: looking for entities, by text and by what they have."""

import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.service import Service, component, resource
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.visiting import Browser, browser, signed_in, words

_ROW = re.compile(r'class="catalog-name"><svg.*?</svg><a href="([^"]+)"', re.S)


def rows(page: str) -> list[str]:
    """The names of the entities on a page, as their links end."""
    return [path.rpartition("/")[2] for path in _ROW.findall(page)]


def named(name: str, kind: str = "Component", **metadata: Any) -> dict[str, Any]:
    """An entity with this metadata."""
    spec = metadata.pop("spec", {"type": "service", "lifecycle": "production", "owner": "team-a"})
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


async def followed(visitor: Browser, path: str, rel: str) -> list[list[str]]:
    """The rows of a page and of all that follow it in one direction, with the last path."""
    found = []
    while path:
        page = await visitor.text(path)
        found.append(rows(page))
        link = re.search(rf'href="([^"]+)" rel="{rel}"', page)
        path = link[1].replace("&amp;", "&") if link else ""
    return found


async def test_an_empty_catalog_says_how_to_fill_it(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/catalog")
    assert "There are no entities yet" in page
    assert "factbook push services catalog.yaml" in page
    assert "http://127.0.0.1:8000/api/catalog/factbook-entities/sets/services" in page
    assert {"/connect", "/administration/account/api-access"} <= set(hrefs(page))


async def test_an_entity_is_listed_with_what_matters(service: Service) -> None:
    visitor = await signed_in(service)
    item = named("web", title="The shop", description="What\n customers see.", tags=["go", "pci"])
    await service.push("all", item, resource("Master Account"))
    page = await visitor.text("/catalog", kind="")
    text = words(page)
    assert "2 entities" in text
    assert "The shop web What customers see. Component service team-a go pci" in text
    assert "/catalog/component/default/web" in hrefs(page)
    assert "/catalog/resource/default/master%20account" in hrefs(page)
    assert "/catalog/group/default/team-a" in hrefs(page)
    assert "All 2" in text
    assert "Component 1" in text


@pytest.mark.both_databases
async def test_text_is_found_in_names_titles_descriptions_and_tags(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    item = named(
        "payments-worker", title="Money mover", description="It moves around.", tags=["tier-1"]
    )
    await service.push("all", item, component("other"))
    for text in ["PAYMENT", "ayments-", "Money", "moves around", "tier"]:
        with subtests.test(text=text):
            page = await visitor.text("/catalog", q=text)
            assert rows(page) == ["payments-worker"]
            assert "1 entity found" in words(page)


@pytest.mark.both_databases
async def test_a_text_means_itself(service: Service, subtests: pytest.Subtests) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"), component("100% o_o \\ '"))
    for text in ["%", "_", "\\", "'", "100%", "\0web", "e" * 500]:
        with subtests.test(text=text):
            page = await visitor.text("/catalog", q=text)
            expected = ["web"] if "web" in text else ["100%25%20o_o%20%5C%20%27"] * (len(text) < 9)
            assert rows(page) == expected


@pytest.mark.both_databases
async def test_filters_combine(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push(
        "one",
        named("wanted", namespace="shop", tags=["go"], spec={"owner": "group:default/team-b"}),
        named("of-another-owner", namespace="shop", tags=["go"]),
        named("of-another-tag", namespace="shop", spec={"owner": "default/team-b"}),
        named("of-another-namespace", tags=["go"], spec={"owner": "team-b"}),
        named("of-another-kind", "Resource", namespace="shop", tags=["go"],
              spec={"owner": "group:default/team-b"}),
    )  # fmt: skip
    await service.push(
        "two", named("in-another-set", namespace="shop", tags=["go"],
                     spec={"owner": "group:default/team-b"}),
    )  # fmt: skip
    asked: dict[str, Any] = {
        "kind": "component",
        "namespace": "shop",
        "owner": "team-b",
        "tag": "go",
        "set": "one",
    }
    page = await visitor.text("/catalog", **asked, q="wan")
    assert rows(page) == ["wanted"]
    assert rows(await visitor.text("/catalog", **asked)) == ["wanted"]
    for name, other in (
        ("kind", "of-another-kind"),
        ("tag", "of-another-tag"),
        ("set", "in-another-set"),
    ):
        fewer: dict[str, Any] = {key: value for key, value in asked.items() if key != name}
        assert sorted(rows(await visitor.text("/catalog", **fewer))) == sorted(["wanted", other])
    without_owner: dict[str, Any] = {key: value for key, value in asked.items() if key != "owner"}
    assert "of-another-owner" in rows(await visitor.text("/catalog", **without_owner))


async def test_kinds_are_counted_among_what_else_is_asked_for(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("a-1"), component("a-2"), component("b"), resource("a-3"))
    page = await visitor.text("/catalog", q="a-", kind="component")
    text = words(page)
    assert "2 entities found" in text
    assert "All 3" in text
    assert "Resource 1" in text
    assert "/catalog?q=a-&kind=resource" in hrefs(page)


async def test_a_set_is_one_of_its_exact_name(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("Shop", component("upper"))
    await service.push("shop", component("lower"))
    assert rows(await visitor.text("/catalog", set="Shop")) == ["upper"]


@pytest.mark.slow
@pytest.mark.both_databases
async def test_pages_give_each_entity_once_in_both_directions(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    for part in range(3):
        service.time.advance(1000)
        items = [component(f"c{number:03}") for number in range(part, 120, 3)]
        await service.push(f"set {part}", *items, resource(f"r{part}"), resource(f"c00{part}"))
    for order in ["name", "kind", "updated"]:
        with subtests.test(order=order):
            forward = await followed(visitor, f"/catalog?order={order}", "next")
            found = [name for page in forward for name in page]
            assert [len(page) for page in forward] == [40, 40, 40, 6]
            assert sorted(found) == sorted(
                [f"c{number:03}" for number in range(120)] + [f"r{n}" for n in range(3)]
                + [f"c00{n}" for n in range(3)]
            )  # fmt: skip
            if order == "name":
                assert found == sorted(found)
            if order == "updated":
                assert found[0] == "r2"
            last = await visitor.text(await _last(visitor, f"/catalog?order={order}"))
            back = re.search(r'href="([^"]+)" rel="prev"', last)
            assert back is not None
            backward = await followed(visitor, back[1].replace("&amp;", "&"), "prev")
            assert [*backward[::-1]] == forward[:-1]


async def _last(visitor: Browser, path: str) -> str:
    while link := re.search(r'href="([^"]+)" rel="next"', await visitor.text(path)):
        path = link[1].replace("&amp;", "&")
    return path


async def test_an_address_of_no_page_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    for query in [
        "after=nonsense",
        "after=W10",  # []
        "after=WyJuYW1lIl0",  # ["name"]
        "after=WyJuYW1lIiwxLDJd",  # ["name",1,2]
        "after=WyJuYW1lIiwiYVx1MDAwMCIsImIiXQ",  # ["name","a\u0000","b"]
        "after=WyJraW5kIiwiYSJd",  # of another order
        "order=updated&before=WyJ1cGRhdGVkIiw5OTk5OTk5OTk5OTk5OTk5OTk5OTk5LCJhIl0",
        "order=updated&after=WyJ1cGRhdGVkIix0cnVlLCJhIl0",
        "order=colour",
        "after=%FF%FE",
        "after=" + "A" * 5000,
    ]:
        with subtests.test(query=query):
            page = await visitor.text(f"/catalog?{query}", 400)
            assert "This did not work" in page


async def test_without_hits_the_filters_can_be_cleared(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    page = await visitor.text("/catalog", q="nowhere", tag="none")
    assert "No entities match" in page
    assert "0 entities found" in words(page)
    assert "/catalog" in hrefs(page)


async def test_what_is_no_owner_is_said_so(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    for text in ("a:b:c/d/", "nobody"):
        page = await visitor.text("/catalog", owner=text)
        assert rows(page) == []
        assert "There are no matching owners." in page


@pytest.mark.both_databases
async def test_a_place_at_the_end_of_what_was_removed_leads_back(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", *(component(f"c{number:03}") for number in range(60)))
    page = await visitor.text("/catalog")
    link = re.search(r'href="([^"]+)" rel="next"', page)
    assert link is not None
    await service.push("all", component("c000"))
    page = await visitor.text(link[1].replace("&amp;", "&"))
    assert "No more entities" in page


async def test_hostile_entities_stay_text(service: Service) -> None:
    visitor = await signed_in(service)
    text = HOSTILE.replace("\u202e", "").replace("\u2028", "").replace("/", "|").replace(":", "|")
    item = named(
        text,
        title=HOSTILE,
        description=HOSTILE,
        tags=[HOSTILE, "javascript:alert(1)"],
        spec={"type": HOSTILE, "owner": "javascript:alert(1)", "lifecycle": HOSTILE},
    )
    pushed = await service.push("a set " + HOSTILE[:8], item)
    assert pushed.status_code == 200, pushed.text
    assert is_harmless(await visitor.text("/catalog"))
    for name in ("q", "tag", "owner", "set", "kind", "namespace", "type", "lifecycle", "system"):
        assert is_harmless(await visitor.text(f"/catalog?{name}={quote(HOSTILE)}"))
    assert "&lt;script&gt;" in await visitor.text("/catalog")


async def test_a_viewer_sees_the_catalog_and_nobody_else_does(service: Service) -> None:
    await service.push("all", component("web"))
    visitor = await signed_in(service, "vic", "viewer")
    assert rows(await visitor.text("/catalog")) == ["web"]
    answer = await browser(service).open("/catalog")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")
