"""Whose rules count for exemptions: no scorecard decides on the checks of other teams."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from factbook.auth import permissions as auth_permissions
from tests.api.checking import EXEMPTIONS, SCORECARDS, check, put, scorecard, wish, with_source
from tests.api.defining import problems, refusal
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.scoring import group, person

SECURITY, TEAM = "group:default/security", "group:default/team-a"
READ = "tech-insights.check.read"
DECIDE = "tech-insights.exemption.decide"
ATTACKS: Mapping[str, dict[str, Any]] = {
    "a colleague approves": {"approvers": [TEAM]},
    "nobody decides": {"approvers": ["group:default/nobody"]},
    "nobody asks": {"enabled": False},
    "for a day": {"maxDays": 1},
    "for good": {"permanent": True, "approvers": [TEAM]},
}


@pytest.fixture
async def service(start: StartService) -> Service:
    """Security's check, and two editors of the team whose component fails it."""
    service = await start()
    await with_source(service)
    people = [person("kim", "team-a"), person("lou", "team-a"), person("sam", "security")]
    groups = [group("team-a"), group("security")]
    answer = await service.push("shop", component("web", owner="group:team-a"), *groups, *people)
    assert answer.status_code == 200, answer.text
    await put(service, check(owner=SECURITY), publish=True)
    return service


@asynccontextmanager
async def client(
    service: Service, who: str, *permissions: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with a token of a person: that of an editor, or with these permissions."""
    held = permissions or tuple(auth_permissions.ROLES[auth_permissions.EDITOR])
    token = await service.token(*held, owner=f"user:default/{who}")
    async with service.client(token) as http:
        yield http


async def asked(service: Service, who: str = "kim", **more: Any) -> str:
    async with client(service, who) as http:
        answer = await http.post(EXEMPTIONS, json=wish(**more))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def decided(
    service: Service, id_: str, who: str, *permissions: str, decision: str = "approve"
) -> httpx2.Response:
    async with client(service, who, *permissions) as http:
        return await http.post(f"{EXEMPTIONS}/{id_}/{decision}")


async def publish(http: httpx2.AsyncClient, document: dict[str, Any]) -> None:
    answer = await http.put(
        f"{SCORECARDS}/{document['id']}", json=document, params={"publish": "true"}
    )
    assert answer.status_code == 200, answer.text


async def published_by_editor(service: Service, rules: dict[str, Any], **more: Any) -> None:
    async with client(service, "kim") as http:
        await publish(http, scorecard("mine", owner=TEAM, exemptions=rules, **more))


@pytest.mark.spec("exemptions.only-the-checks-owner-decides")
async def test_a_scorecard_of_an_editor_decides_nothing_about_the_check_of_another_team(
    service: Service, subtests: pytest.Subtests
) -> None:
    for attack, rules in ATTACKS.items():
        with subtests.test(attack=attack):
            await published_by_editor(service, rules)
            id_ = await asked(service)
            refused = await decided(service, id_, "lou")
            assert "group of yours that owns the check" in refusal(refused, 403)
            allowed = await decided(service, id_, "max", READ, DECIDE, decision="deny")
            assert allowed.json()["state"] == "denied"
    async with client(service, "kim") as http:
        endless = await http.post(EXEMPTIONS, json=wish(until=None))
    assert "until" in problems(endless)


async def test_the_owners_of_a_check_decide_where_no_rules_name_approvers(
    service: Service,
) -> None:
    await published_by_editor(service, {"approvers": [TEAM]})
    id_ = await asked(service)
    reading = await decided(service, id_, "sam", READ)
    assert "group of yours that owns the check" in refusal(reading, 403)
    assert (await decided(service, id_, "sam")).json()["state"] == "approved"
    assert (await decided(service, id_, "lou", decision="revoke")).status_code == 403


async def test_rules_of_the_owner_of_the_check_count(service: Service) -> None:
    async with client(service, "sam") as http:
        await publish(http, scorecard("theirs", owner=SECURITY, exemptions={"approvers": [TEAM]}))
    id_ = await asked(service)
    assert "Members of group:default/team-a decide" in refusal(
        await decided(service, id_, "sam"), 403
    )
    assert (await decided(service, id_, "lou")).status_code == 200
    # Handed over to another owner, the check is theirs alone.
    await put(service, check(owner="group:default/others"), publish=True)
    id_ = await asked(service, check=None, scorecard="theirs")
    assert (await decided(service, id_, "lou")).status_code == 200
    refused = await decided(service, await other(service), "lou")
    assert refused.status_code == 403


async def other(service: Service) -> str:
    """A request about another entity."""
    await service.push("more", component("more", owner="group:team-a"))
    return await asked(service, entity="component:more")


async def test_rules_published_with_the_permission_count_until_somebody_else_changes_them(
    service: Service,
) -> None:
    card = scorecard("mine", owner=TEAM, exemptions={"approvers": [TEAM]})
    await put(service, check("slo", owner=SECURITY), publish=True)
    await publish(service.http, card)
    async with client(service, "kim") as kim:
        # Another title leaves the rules as they were; a check that is added is not of that.
        entries = [*card["entries"], {"check": "slo"}]
        await publish(kim, {**card, "title": "Another", "entries": entries})
        assert (await decided(service, await asked(service), "lou")).status_code == 200
        added = await asked(service, check="slo")
        assert (await decided(service, added, "lou")).status_code == 403
        await publish(kim, {**card, "exemptions": {"approvers": [TEAM], "permanent": True}})
        assert (await decided(service, await other(service), "lou")).status_code == 403
        # Nor do they count again once they are what they were.
        await publish(kim, card)
        assert (await decided(service, added, "lou")).status_code == 403
    # Publishing once more with the permission makes them count, without a change.
    await publish(service.http, card | {"entries": entries})
    assert (await decided(service, added, "lou")).status_code == 200


async def test_a_draft_of_an_editor_counts_once_it_is_published_with_the_permission(
    service: Service,
) -> None:
    card = scorecard("mine", owner=TEAM, exemptions={"approvers": [TEAM]})
    async with client(service, "kim") as http:
        assert (await http.post(SCORECARDS, json=card)).status_code == 201
        await http.post(f"{SCORECARDS}/mine/publish")
    id_ = await asked(service)
    assert (await decided(service, id_, "lou")).status_code == 403
    again = await service.http.post(f"{SCORECARDS}/mine/publish")
    assert again.status_code == 200, again.text
    assert (await decided(service, id_, "lou")).status_code == 200
