"""The editors of checks and scorecards for members of the groups that own them."""

from typing import Any

import pytest

from factbook.auth import permissions
from factbook.datasources.custom import yaml_text
from tests.api.checking import CHECKS
from tests.conftest import StartService
from tests.service import Service
from tests.web.scoring import CARD, COVERS, person, scored
from tests.web.visiting import Browser, signed_in, words

EDIT, EDIT_CARD = "/checks/covered/edit", "/scorecards/readiness/edit"


@pytest.fixture
async def scoring(start: StartService) -> Service:
    """A check of team-a and a scorecard of the department, with mia who is in team-a."""
    service = await scored(start)
    await service.push("people", person("mia", "team-a"))
    return service


@pytest.fixture
async def mia(scoring: Service) -> Browser:
    return await signed_in(scoring, "mia", permissions.EDITOR)


def text(document: dict[str, Any], **changes: Any) -> str:
    return yaml_text.write_yaml({**document, **changes})


@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_a_member_edits_and_publishes_the_check_of_the_group(
    scoring: Service, mia: Browser
) -> None:
    assert "Edit" in words(await mia.text("/checks/covered"))
    page = await mia.text(EDIT)
    seen = page.partition('name="seen" value="')[2].partition('"')[0]
    body = text(COVERS, title="Covered by tests")
    done = await mia.done(EDIT, text=body, do="publish", seen=seen)
    assert "is published" in words(done)
    assert (await scoring.http.get(f"{CHECKS}/covered")).json()["title"] == "Covered by tests"
    query = {"actor": "user:default/mia", "outcome": "done"}
    answer = await scoring.http.get("/api/access/v1/audit", params=query)
    assert answer.json()["records"][0]["grant"] == "group group:default/team-a"


@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_of_other_groups_a_member_is_shown_no_button_and_saves_nothing(
    scoring: Service, mia: Browser
) -> None:
    assert 'href="/scorecards/readiness/edit"' not in await mia.text("/scorecards/readiness")
    assert "/scorecards/readiness/publish" not in await mia.text("/scorecards/readiness")
    page = await mia.text(EDIT_CARD)
    seen = page.partition('name="seen" value="')[2].partition('"')[0]
    mine = text(CARD, owner="group:default/team-a")
    answer = await mia.send(EDIT_CARD, text=mine, do="save", seen=seen)
    assert answer.status_code == 403
    assert "A group of yours has to own this scorecard" in words(answer.text)


async def test_a_new_check_has_to_be_of_a_group_of_its_author(
    scoring: Service, mia: Browser
) -> None:
    assert "Define a check" in words(await mia.text("/checks"))
    await mia.open("/checks/-/new")
    for owner, status in (("group:default/team-b", 403), ("group:default/team-a", 303)):
        body = text(COVERS, id=f"of-{status}", owner=owner)
        answer = await mia.send("/checks/-/new", text=body, do="save", seen="")
        assert answer.status_code == status, answer.text


async def test_who_is_in_no_group_is_shown_no_button(scoring: Service) -> None:
    eve = await signed_in(scoring, "eve", permissions.EDITOR)
    assert 'href="/checks/covered/edit"' not in await eve.text("/checks/covered")
