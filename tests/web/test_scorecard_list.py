"""The page of all scorecards."""

import pytest

from tests.conftest import StartService
from tests.service import Service
from tests.web.markup import hrefs, is_harmless
from tests.web.scoring import CARD, published, scored
from tests.web.visiting import signed_in, words

PATH = "/scorecards"


@pytest.fixture
async def scoring(start: StartService) -> Service:
    return await scored(start)


async def test_it_shows_how_far_entities_are_and_leads_to_each_count(scoring: Service) -> None:
    visitor = await signed_in(scoring, role="viewer")
    page = await visitor.text(PATH)
    assert is_harmless(page)
    text = words(page)
    # Of four known results one passes; two more are unknown.
    assert "25% pass · 67% known" in text
    assert "silver 0 entities: silver bronze 1 entities: bronze no level 2" in text
    assert "mean score, 90 days" in text
    assert "Tests cover nearly all 2 entities" in text
    found = hrefs(page)
    for path in ("level=bronze", "level=none", "/checks/much?state=fail"):
        [link] = {one for one in found if one.endswith(path)}
        assert link


async def test_a_new_service_tells_what_a_scorecard_is_and_adopts_the_starter(
    service: Service,
) -> None:
    ada = await signed_in(service)
    page = await ada.text(PATH)
    assert "Missing facts count as unknown, never as failed." in words(page)
    page = await ada.done(f"{PATH}/-/starter")
    assert "drafts were created" in words(page)
    listed = await ada.text(PATH)
    assert "it has no effect until it is published" in words(listed)


async def test_who_may_only_read_is_offered_no_starter(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    page = await vic.text(PATH)
    assert "Adopt the starter" not in page
    assert (await vic.send(f"{PATH}/-/starter")).status_code == 403


@pytest.mark.slow
async def test_lists_with_many_scorecards_go_on(scoring: Service) -> None:
    for number in range(21):
        await published(scoring, {**CARD, "id": f"card-{number:02}", "title": f"Card {number}"})
    visitor = await signed_in(scoring)
    page = await visitor.text(PATH)
    assert "Card 19" in page
    assert "Card 20" not in page
    [after] = [path for path in hrefs(page) if "after=" in path]
    assert "Card 20" in await visitor.text(after)
