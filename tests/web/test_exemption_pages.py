"""Exemptions in the pages: asked for beside a failing result, decided in a queue."""

import re
from typing import Any

import pytest

from tests.api.checking import EXEMPTIONS, check, evaluated
from tests.conftest import StartService
from tests.service import Service
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.scoring import CARD, published, scored
from tests.web.visiting import Browser, signed_in, words

PATH = "/exemptions"
NEW = f"{PATH}/-/new"
WISH = {"check": "covered", "entity": "component:api", "reason": "Shut down", "until": "2027-03-31"}


@pytest.fixture
async def scoring(start: StartService) -> Service:
    return await scored(start)


async def asked(service: Service, **more: Any) -> str:
    """An exemption that somebody else asks for."""
    answer = await service.http.post(EXEMPTIONS, json={**WISH, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def decide(visitor: Browser, id_: str, decision: str, **fields: str) -> str:
    await visitor.open(PATH)
    return words(await visitor.done(f"{PATH}/{id_}/{decision}", **fields))


async def test_an_owner_asks_beside_the_result_and_somebody_else_approves(
    scoring: Service,
) -> None:
    kim = await signed_in(scoring, "kim", "viewer")
    [path] = [one for one in hrefs(await kim.text("/checks/covered")) if one.startswith(NEW)]
    assert path == f"{NEW}?check=covered&entity=component%3Adefault%2Fapi"
    assert NEW in hrefs(await kim.text(PATH))
    form = await kim.text(path)
    assert is_harmless(form)
    assert 'value="component:default/api"' in form
    done = words(await kim.done(NEW, **WISH))
    assert "It takes effect once it is approved" in done
    assert "somebody else decides" in done
    [row] = (await scoring.http.get(EXEMPTIONS)).json()["exemptions"]
    assert row["requestedBy"] == "user:default/kim"
    ada = await signed_in(scoring)
    page = await decide(ada, row["id"], "approve", comment="Agreed")
    assert "The exemption of component:api is approved" in page
    await evaluated(scoring)
    listed = words(await ada.text(PATH, state="approved"))
    assert "“Agreed”" in listed
    assert "active" in listed
    assert "component:api" in words(await ada.text("/checks/covered", state="exempt"))


async def test_requests_wait_where_scorecards_are(scoring: Service) -> None:
    await asked(scoring)
    ada = await signed_in(scoring)
    page = await ada.text("/scorecards")
    assert "1 request waits" in words(page)
    assert PATH in hrefs(page)


async def test_a_request_is_denied_and_an_exemption_revoked(scoring: Service) -> None:
    ada = await signed_in(scoring)
    first = await asked(scoring)
    assert "is denied" in await decide(ada, first, "deny", comment="Fix it")
    assert "“Fix it”" in words(await ada.text(PATH, state="denied"))
    second = await asked(scoring)
    await decide(ada, second, "approve")
    assert "is revoked" in await decide(ada, second, "revoke")
    await evaluated(scoring)
    assert "component:api" in await ada.text("/checks/covered", state="fail")


async def test_what_is_wrong_with_a_request_stands_beside_its_field(scoring: Service) -> None:
    ada = await signed_in(scoring)
    await ada.open(NEW)
    for fields, status, told in (
        ({"reason": " "}, 400, "is required"),
        ({"until": ""}, 400, "an exemption without an end is not allowed here"),
        ({"until": "soon"}, 400, "has to be a date"),
        ({"scorecard": "readiness"}, 400, "and not both"),
        ({"entity": "component:none"}, 404, "There is no entity"),
        ({"check": "none"}, 404, "There is no check"),
        ({"link": "javascript:alert(1)"}, 400, "has to be"),
    ):
        answer = await ada.send(NEW, **{**WISH, **fields})
        assert answer.status_code == status, (fields, answer.text)
        assert told in words(answer.text), fields
        assert is_harmless(answer.text)
    await ada.done(NEW, **WISH)
    again = await ada.send(NEW, **WISH)
    assert again.status_code == 409
    assert "There is already an exemption" in words(again.text)


async def test_who_does_not_own_an_entity_may_not_ask(scoring: Service) -> None:
    vic = await signed_in(scoring, "vic", "viewer")
    for path in ("/checks/covered", PATH):
        assert NEW not in await vic.text(path)
    await vic.open(NEW)
    answer = await vic.send(NEW, **WISH)
    assert answer.status_code == 403
    assert "member of the group that owns the entity" in words(answer.text)


async def test_who_may_not_decide_is_offered_nothing_and_refused(scoring: Service) -> None:
    id_ = await asked(scoring)
    vic = await signed_in(scoring, "vic", "viewer")
    page = await vic.text(PATH)
    assert "not yours to decide" in page
    assert "/approve" not in page
    assert (await vic.send(f"{PATH}/{id_}/approve")).status_code == 403


async def test_members_of_the_groups_that_a_scorecard_names_decide(scoring: Service) -> None:
    await published(scoring, {**CARD, "exemptions": {"approvers": ["group:default/team-b"]}})
    id_ = await asked(scoring)
    vic = await signed_in(scoring, "vic", "viewer")
    assert "not yours to decide" in await vic.text(PATH)
    kim = await signed_in(scoring, "kim", "viewer")
    assert "is approved" in await decide(kim, id_, "approve")


async def test_one_asked_for_by_oneself_is_not_approved_by_oneself(scoring: Service) -> None:
    ada = await signed_in(scoring)
    await ada.open(NEW)
    page = await ada.done(NEW, **WISH)
    assert "Somebody else approves it" in page
    [row] = (await scoring.http.get(EXEMPTIONS)).json()["exemptions"]
    assert (await ada.send(f"{PATH}/{row['id']}/approve")).status_code == 403
    assert "is denied" in await decide(ada, row["id"], "deny")


async def test_it_is_too_late_to_decide_twice(scoring: Service) -> None:
    id_ = await asked(scoring)
    ada = await signed_in(scoring)
    await decide(ada, id_, "approve")
    assert (await ada.send(f"{PATH}/{id_}/deny")).status_code == 409
    assert (await ada.send(f"{PATH}/none/deny")).status_code == 404


async def test_a_form_without_its_token_is_refused(scoring: Service) -> None:
    id_ = await asked(scoring)
    ada = await signed_in(scoring)
    ada.csrf = ""
    assert (await ada.send(f"{PATH}/{id_}/approve")).status_code == 403


@pytest.mark.slow
async def test_queues_go_on(scoring: Service) -> None:
    for number in range(27):
        await published(scoring, check(f"c{number}"))
        scoring.time.advance(1)
        await asked(scoring, check=f"c{number}")
    ada = await signed_in(scoring)
    page = await ada.text(PATH)
    assert "25 exemptions" in words(page)
    [more] = [path for path in hrefs(page) if "cursor=" in path]
    assert re.findall(r">(c\d)</a>", await ada.text(more)) == ["c1", "c0"]


async def test_texts_of_requests_do_no_harm(scoring: Service) -> None:
    id_ = await asked(scoring, reason=HOSTILE, link="https://x.example/<script>")
    ada = await signed_in(scoring)
    assert is_harmless(await ada.text(PATH))
    await decide(ada, id_, "deny", comment=HOSTILE)
    assert is_harmless(await ada.text(PATH, state="denied"))
    assert is_harmless(await ada.text(NEW, entity=HOSTILE, check=HOSTILE, reason=HOSTILE))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_addresses_that_make_no_sense_are_refused(
    scoring: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(scoring)
    cases: list[dict[str, Any]] = [{"state": "lost"}, {"cursor": "x"}, {"cursor": "9-\0"}]
    for query in cases:
        with subtests.test(query=query):
            assert is_harmless(await ada.text(PATH, 400, **query))
