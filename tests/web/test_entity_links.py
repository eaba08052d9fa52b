"""Links in the head of an entity's page to where people work on it."""

from typing import Any

import pytest

from factbook.web.entity_view import list_outward_links
from tests.service import Service, component
from tests.web.entities import WEB
from tests.web.markup import HOSTILE, is_harmless, links
from tests.web.visiting import signed_in, words


def told(annotations: dict[str, str], *links: dict[str, Any]) -> list[tuple[str, str]]:
    """The purposes and addresses of an entity's links."""
    metadata = {"name": "web", "annotations": annotations, "links": list(links)}
    return [(link.purpose, link.href) for link in list_outward_links({"metadata": metadata})]


async def test_a_link_is_labelled_with_the_host_that_browsers_open(service: Service) -> None:
    addresses = {
        "https://u[@acme.example/": "acme.example",
        "https://\u2100@acme.example/": "acme.example",
        "https://evil.example\\@ok.example/": "evil.example",
        "https://evil.example\\.ok.example/": "evil.example",
        "https://ok.example@evil.example/": "evil.example",
        "https://ok.example:secret@evil.example:8443/": "evil.example:8443",
        "https://%65vil.example/": "evil.example",
        "https:evil.example/@ok.example": None,
        "https:///evil.example/": "evil.example",
        "https://\u0435vil.example/": "xn--vil-qdd.example",
        "http://0x7f.1/": "127.0.0.1",
    }
    kinds = ["dashboard", "runbook"]
    reader = await signed_in(service)
    for first in range(0, len(addresses), 5):
        some = list(addresses.items())[first : first + 5]
        entity = component("web")
        entity["metadata"]["links"] = [
            {"url": address, "type": kinds[number % 2]} for number, (address, _) in enumerate(some)
        ]
        assert (await service.push("s", entity)).status_code == 200
        page = await reader.text(WEB)
        titles = {link["href"]: link["title"] for link in links(page) if link.get("title")}
        for address, host in some:
            title = titles.get(address)
            assert (title and title.partition(" on ")[2]) == host, address


def test_annotations_that_other_tools_know_are_links(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str, tuple[str, str]]] = [
        (
            "backstage.io/source-location",
            "url:https://github.com/acme/web/tree/main/",
            ("Source code", "https://github.com/acme/web/tree/main/"),
        ),
        ("github.com/project-slug", "acme/web", ("Source code", "https://github.com/acme/web")),
        (
            "git.acme.example/project-slug",
            "shop/team/web",
            ("Source code", "https://git.acme.example/shop/team/web"),
        ),
        (
            "backstage.io/techdocs-ref",
            "url:https://docs.acme.example/web",
            ("Documentation", "https://docs.acme.example/web"),
        ),
        (
            "opsgenie.com/team",
            "https://acme.app.opsgenie.com/teams/1",
            ("On-call", "https://acme.app.opsgenie.com/teams/1"),
        ),
        (
            "grafana/overview-dashboard",
            "https://grafana.acme.example/d/web",
            ("Dashboard", "https://grafana.acme.example/d/web"),
        ),
        (
            "datadoghq.com/service-name",
            "web shop",
            ("Dashboard", "https://app.datadoghq.com/apm/services/web%20shop"),
        ),
    ]
    for name, value, link in cases:
        with subtests.test(name=name, value=value, link=link):
            assert told({name: value}) == [link]


def test_on_call_needs_the_account_of_the_service() -> None:
    service = {"pagerduty.com/service-id": "P123"}
    assert told(service) == []
    assert told(service | {"pagerduty.com/account": "acme"}) == [
        ("On-call", "https://acme.pagerduty.com/service-directory/P123")
    ]


def test_links_have_the_purpose_that_their_type_icon_or_title_says() -> None:
    assert told(
        {"github.com/project-slug": "acme/web"},
        {"url": "https://graphs.acme.example/web", "icon": "dashboard"},
        {"url": "https://a.example/1", "title": "Runbook"},
        {"url": "https://a.example/2", "type": "docs", "title": "All about it"},
        {"url": "https://github.com/acme/web/", "title": "Repository"},
        {"url": "https://a.example/3", "title": "Shop"},
    ) == [
        ("Source code", "https://github.com/acme/web"),
        ("Documentation", "https://a.example/2"),
        ("Runbook", "https://a.example/1"),
        ("Dashboard", "https://graphs.acme.example/web"),
    ]


def test_what_is_no_address_of_the_web_is_no_link(subtests: pytest.Subtests) -> None:
    names = (
        "backstage.io/source-location",
        "backstage.io/techdocs-ref",
        "github.com/project-slug",
        "pagerduty.com/service-id",
        "grafana/dashboard",
        "x/../y/project-slug",
        "datadoghq.com/site",
    )
    for value in [
        "javascript:alert(1)",
        "url:file:///etc/passwd",
        "../..",
        "acme/web?x=1",
        HOSTILE,
        "",
        "//x/y",
    ]:
        with subtests.test(value=value):
            assert told(dict.fromkeys(names, value)) == []


async def test_the_head_of_every_page_of_an_entity_has_its_links(service: Service) -> None:
    visitor = await signed_in(service)
    item = component("web")
    item["metadata"]["annotations"] = {"github.com/project-slug": "acme/web"}
    item["metadata"]["links"] = [
        {"url": "https://runbooks.acme.example/web", "title": f"Runbook {HOSTILE}"},
        {"url": "https://shop.acme.example", "title": "Shop"},
    ]
    await service.push("all", item)
    for path in (WEB, f"{WEB}/relations", f"{WEB}/raw"):
        page = await visitor.text(path)
        assert is_harmless(page)
        found = [link["href"] for link in links(page) if link.get("title", "").find(" on ") > 0]
        assert found == ["https://github.com/acme/web", "https://runbooks.acme.example/web"]
    text = words(await visitor.text(WEB))
    assert text.count("owned by team-a") == 1
    assert "Links Shop" in text
