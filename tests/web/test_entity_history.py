"""The history of an entity itself: what each revision of its set changed in it."""

from factbook.clock import HOUR
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.entities import WEB
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.visiting import signed_in, words

HISTORY = f"{WEB}/history"


async def test_each_change_says_what_when_and_by_whom(service: Service) -> None:
    first = component("web")
    await service.push("shop", first, component("api"))
    service.time.advance(HOUR)
    second = component("web", lifecycle="deprecated")
    second["metadata"]["tags"] = ["go"]
    await service.push("shop", second, component("api"))
    service.time.advance(HOUR)
    await service.push("shop", second, component("api", owner="team-b"))
    service.time.advance(HOUR)
    await service.push("shop", component("api"), second)
    visitor = await signed_in(service)
    page = await visitor.text(WEB)
    text = words(page)
    assert "History All changes Revision 2 updated" in text
    assert (
        "updated metadata.tags, spec.lifecycle 2 hours ago by user:tester Revision 1 added" in text
    )
    assert {"/sets/shop/revisions/2", "/sets/shop/revisions/1", HISTORY} <= set(hrefs(page))
    assert "/sets/shop/revisions/3" not in hrefs(page)
    own = words(await visitor.text(HISTORY))
    assert '- "lifecycle": "production"' in own
    assert '+ "lifecycle": "deprecated"' in own
    assert "added 3 hours ago by user:tester" in own


async def test_an_entity_that_was_gone_meanwhile_tells_so(service: Service) -> None:
    await service.push("shop", component("web"), component("api"))
    await service.push("shop", component("api"))
    await service.push("shop", component("web"), component("api"))
    visitor = await signed_in(service)
    text = words(await visitor.text(HISTORY))
    places = [text.index(f"{kind} now by user:tester Revision {number}")
              for number, kind in ((3, "added"), (2, "removed"), (1, "added"))]  # fmt: skip
    assert places == sorted(places)


async def test_many_changes_lead_on_to_the_set(service: Service) -> None:
    for number in range(23):
        await service.push("shop", component("web", replicas=number))
    visitor = await signed_in(service)
    page = await visitor.text(HISTORY)
    assert page.count('<section class="card"') == 20
    assert "Earlier changes are in the revisions of the set" in words(page)
    assert words(await visitor.text(WEB)).count("updated spec.replicas") == 5


async def test_hostile_values_of_a_change_are_text(service: Service) -> None:
    await service.push("shop", component("web", note="a"))
    await service.push("shop", component("web", note=HOSTILE, **{"<b>": {"a.b": HOSTILE}}))
    visitor = await signed_in(service)
    for path in (WEB, HISTORY):
        page = await visitor.text(path)
        assert is_harmless(page)
        assert "spec.<b>" in words(page)


async def test_without_kept_revisions_there_is_none(start: StartService) -> None:
    service = await start(revisions_kept=0)
    await service.push("shop", component("web"))
    await service.push("shop", component("web", replicas=2))
    visitor = await signed_in(service)
    assert "No change is kept" in words(await visitor.text(HISTORY))
    assert "History All changes" not in words(await visitor.text(WEB))
    await visitor.text("/catalog/component/default/nowhere/history", 404)
