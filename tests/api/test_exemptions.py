"""Exemptions over HTTP: who may ask and decide, what is refused, and what it leaves."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.api.checking import EXEMPTIONS, SCORECARDS, check, put, scorecard, wish, with_source
from tests.api.defining import problems, refusal
from tests.conftest import StartService
from tests.events.feed import events
from tests.service import Service, component

READ = "tech-insights.check.read"
DECIDE = "tech-insights.exemption.decide"
REQUEST = "tech-insights.exemption.request"


def entity(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    version = "backstage.io/v1alpha1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def service(start: StartService) -> Service:
    service = await start()
    await with_source(service)
    people = [
        entity("Group", "team-a", type="team", children=[]),
        entity("Group", "board", type="team", children=[], members=["lee"]),
        entity("User", "kim", memberOf=["team-a"]),
        entity("User", "lee", memberOf=[]),
        entity("User", "max", memberOf=[]),
    ]
    answer = await service.push("shop", component("web", owner="group:team-a"), *people)
    assert answer.status_code == 200, answer.text
    await put(service, check(), publish=True)
    return service


async def call(
    service: Service, who: str, path: str, body: Any = None, *permissions: str
) -> httpx2.Response:
    token = await service.token(*(permissions or (READ,)), owner=f"user:default/{who}")
    async with service.client(token) as http:
        return await http.post(f"{EXEMPTIONS}{path}", json=body)


async def asked(service: Service, **more: Any) -> str:
    answer = await call(service, "kim", "", wish(**more))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_a_member_of_the_group_that_owns_an_entity_may_ask(service: Service) -> None:
    answer = await call(service, "kim", "", wish())
    assert answer.status_code == 201
    made = answer.json()
    assert (made["state"], made["requestedBy"]) == ("requested", "user:default/kim")
    assert made["until"] == "2027-04-01T00:00:00.000+00:00"
    refused = await call(service, "max", "", wish())
    assert "member of the group that owns" in refusal(refused, 403)
    permitted = await call(
        service,
        "max",
        "",
        wish(check=None, scorecard="none"),
        READ,
        "tech-insights.exemption.request",
    )
    assert "no scorecard" in refusal(permitted, 404)


async def test_one_that_has_no_end_or_asks_for_nothing_is_refused(service: Service) -> None:
    answer = await call(service, "kim", "", wish(until=None))
    assert "until" in problems(answer)
    answer = await call(service, "kim", "", {"entity": "component:web"})
    assert set(problems(answer)) >= {"reason", "check"}
    assert (await call(service, "kim", "", wish(check="none"))).status_code == 404
    assert (await service.http.get(EXEMPTIONS)).json() == {"exemptions": []}


async def test_somebody_else_than_who_asked_approves(service: Service) -> None:
    id_ = await asked(service)
    assert (await call(service, "lee", f"/{id_}/approve")).status_code == 403
    own = await call(service, "kim", f"/{id_}/approve", None, READ, DECIDE)
    assert "Somebody other than the requester" in refusal(own, 403)
    approved = await call(service, "lee", f"/{id_}/approve", {"comment": "Ok"}, READ, DECIDE)
    assert approved.json()["state"] == "approved"
    again = await call(service, "lee", f"/{id_}/approve", None, READ, DECIDE)
    assert "too late" in refusal(again, 409)
    revoked = await call(service, "lee", f"/{id_}/revoke", None, READ, DECIDE)
    assert revoked.json()["state"] == "revoked"


async def test_where_groups_are_named_their_members_decide_or_anyone_with_the_permission(
    service: Service,
) -> None:
    card = scorecard(exemptions={"approvers": ["group:board"], "maxDays": 200})
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    late = await call(service, "kim", "", wish(until="2030-01-01"))
    assert problems(late) == {"until": "can be at most 200 days after the start"}
    id_ = await asked(service)
    refused = await call(service, "max", f"/{id_}/deny")
    assert "group:default/board" in refusal(refused, 403)
    assert (await call(service, "lee", f"/{id_}/deny")).status_code == 200
    again = await asked(service)
    assert (await call(service, "max", f"/{again}/deny", None, READ, DECIDE)).status_code == 200


async def test_members_of_named_groups_decide_without_the_permission(service: Service) -> None:
    id_ = await asked(service)
    refused = await call(service, "lee", f"/{id_}/approve")
    assert "needs the permission" in refusal(refused, 403)
    card = scorecard(exemptions={"approvers": ["group:board"]})
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    assert (await call(service, "max", f"/{id_}/approve")).status_code == 403
    assert (await call(service, "kim", f"/{id_}/approve")).status_code == 403
    approved = await call(service, "lee", f"/{id_}/approve")
    assert (approved.status_code, approved.json()["state"]) == (200, "approved")


@pytest.mark.slow
@pytest.mark.parametrize("rules", [{"maxDays": 30}, {"enabled": False}])
async def test_what_the_rules_forbid_by_now_is_not_approved_and_can_be_denied(
    service: Service, rules: dict[str, Any]
) -> None:
    id_ = await asked(service)
    card = scorecard(exemptions=rules)
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    refused = await call(service, "lee", f"/{id_}/approve", None, READ, DECIDE)
    assert "The rules have changed since the request" in refusal(refused, 409)
    state = (await service.http.get(f"{EXEMPTIONS}/{id_}")).json()["state"]
    assert state == "requested"
    denied = await call(service, "lee", f"/{id_}/deny", None, READ, DECIDE)
    assert denied.json()["state"] == "denied"


@pytest.mark.both_databases
async def test_of_those_who_ask_and_decide_at_once_one_wins(service: Service) -> None:
    answers = await asyncio.gather(*(call(service, "kim", "", wish()) for _ in range(3)))
    assert sorted(one.status_code for one in answers) == [201, 409, 409]
    [made] = [one.json()["id"] for one in answers if one.status_code == 201]
    decided = await asyncio.gather(
        *(
            call(service, "lee", f"/{made}/{decision}", None, READ, DECIDE)
            for decision in ("approve", "deny")
        )
    )
    assert sorted(one.status_code for one in decided) == [200, 409]


@pytest.mark.both_databases
async def test_each_step_is_in_the_feed_and_the_list_goes_by_state(service: Service) -> None:
    id_ = await asked(service)
    await call(service, "lee", f"/{id_}/deny", {"comment": "No"}, READ, DECIDE)
    told = await events(service, type=["exemption.requested", "exemption.decided"])
    assert [one["data"]["exemption"]["state"] for one in told] == ["requested", "denied"]
    service.time.advance(1000)
    other = await asked(service)
    listed = (await service.http.get(EXEMPTIONS, params={"limit": "1"})).json()
    assert [one["id"] for one in listed["exemptions"]] == [other]
    rest = {"cursor": listed["nextCursor"]}
    [older] = (await service.http.get(EXEMPTIONS, params=rest)).json()["exemptions"]
    assert (older["id"], older["comment"]) == (id_, "No")
    query = {"state": "requested", "entity": "component:web", "check": "covered"}
    found = (await service.http.get(EXEMPTIONS, params=query)).json()["exemptions"]
    assert [one["id"] for one in found] == [other]


async def test_a_setting_lets_people_approve_what_they_asked_for(
    service: Service, start: StartService
) -> None:
    id_ = await asked(service)
    other = await start(exemption_self_approval=True)
    # The permission to decide is needed as before.
    assert (await call(other, "kim", f"/{id_}/approve")).status_code == 403
    own = await call(other, "kim", f"/{id_}/approve", None, READ, DECIDE)
    assert own.json()["state"] == "approved"


async def test_a_setting_limits_exemptions_where_no_scorecard_does(
    service: Service, start: StartService
) -> None:
    strict = await start(exemption_days=30)
    refused = await call(strict, "kim", "", wish(until="2026-12-25"))
    assert problems(refused) == {"until": "can be at most 30 days after the start"}
    assert (await call(strict, "kim", "", wish(until="2026-12-19"))).status_code == 201
    card = scorecard(exemptions={"maxDays": 90})
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    longer = wish(check=None, scorecard="readiness", until="2027-02-01")
    assert (await call(strict, "kim", "", longer)).status_code == 201
