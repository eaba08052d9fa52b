"""What an entity is related to, on its pages."""

import re

import pytest

from tests.service import Service, component
from tests.web.entities import WEB, whole
from tests.web.markup import hrefs
from tests.web.visiting import signed_in, words


async def test_relations_are_listed_by_their_types(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push(
        "all", whole(dependsOn=["component:basket", "component:gone"]),
        component("basket"), component("mails", dependsOn=["component:web"]),
    )  # fmt: skip
    page = await visitor.text(WEB)
    text = words(page)
    assert "dependency of 1 mails depends on 2 basket gone not in the catalog" in text
    assert "/catalog/component/default/mails" in hrefs(page)
    # What the spec names is linked; the list leads to what there is.
    assert hrefs(page).count("/catalog/component/default/gone") == 1
    assert hrefs(page).count("/catalog/component/default/basket") == 2


async def test_hundreds_of_relations_are_paged_each_once(service: Service) -> None:
    visitor = await signed_in(service)
    team = {"apiVersion": "backstage.io/v1alpha1", "kind": "Group", "metadata": {"name": "team-a"},
            "spec": {"type": "team", "children": ["team-b"]}}  # fmt: skip
    await service.push("all", team, *(component(f"c{number:03}") for number in range(350)))
    page = await visitor.text("/catalog/group/default/team-a")
    assert "and 342 more" in page
    assert len(page) < 60_000
    listed = "/catalog/group/default/team-a/relations?type=ownerOf"
    assert listed in hrefs(page)
    found, path = [], listed
    while path:
        page = await visitor.text(path)
        found += re.findall(r"<td class=\"mono wrap\">component:default/(c\d+)", page)
        link = re.search(r'href="([^"]+)" rel="next"', page)
        path = link[1].replace("&amp;", "&") if link else ""
    assert found == [f"c{number:03}" for number in range(350)]
    assert "team-b not in the catalog" in words(
        await visitor.text("/catalog/group/default/team-a/relations?type=parentOf")
    )
    assert "No relations here" in await visitor.text(listed, type="nothing")


async def test_a_page_of_relations_that_cannot_be_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    for page in ["0", "-1", "x", "99999999", "1" * 5000]:
        with subtests.test(page=page):
            answer = await visitor.open(f"{WEB}/relations?page={page}")
            assert answer.status_code == 400
            assert "This did not work" in answer.text
