"""Digests over HTTP: who may make them, and that an address is never given back."""

import json
from collections.abc import Iterator

import pytest
import structlog

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE, PERMISSION_NAMES
from tests.api.auditing import records
from tests.api.checking import DIGESTS
from tests.conftest import StartService
from tests.service import Service
from tests.webhooks.receiver import NETWORKS, Receiver, receiving

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SECRET = "T0B0hidden"
NOON_ISO = "2026-11-21T12:00:00.000+00:00"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(outgoing_networks=NETWORKS, public_url="https://factbook.example.com")


async def test_a_digest_is_made_shown_changed_and_removed(
    service: Service, receiver: Receiver
) -> None:
    http = service.http
    body = {"owner": "shop", "form": "slack", "url": f"{receiver.url}/{SECRET}"}
    answer = await http.post(DIGESTS, json=body)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    shown = {
        "id": made["id"],
        "owner": "group:default/shop",
        "form": "slack",
        "url": f"{receiver.url}/…",
        "cadence": "weekly",
        "day": "monday",
        "hour": 8,
        "timeZone": "UTC",
        "createdAt": NOON_ISO,
        "createdBy": "user:default/tester",
        "toldUpTo": NOON_ISO,
        "nextAt": "2026-11-23T08:00:00.000+00:00",
        "lastSuccessAt": None,
        "lastFailureAt": None,
        "lastError": None,
    }
    assert made == shown
    one = f"{DIGESTS}/{made['id']}"
    assert (await http.get(one)).json() == shown
    daily = {"form": "teams", "cadence": "daily", "hour": 6, "timeZone": "Asia/Tokyo"}
    changed = (await http.put(one, json=daily)).json()
    del shown["day"]
    assert changed == {
        **shown,
        **daily,
        "owner": None,
        "nextAt": "2026-11-21T21:00:00.000+00:00",
    }
    assert (await http.get(DIGESTS)).json() == {"digests": [changed]}
    assert (await http.delete(one)).status_code == 204
    for gone in (
        await http.get(one),
        await http.put(one, json=daily),
        await http.delete(one),
        await http.post(f"{one}/test"),
    ):
        assert gone.status_code == 404


async def test_the_address_is_in_no_answer_no_log_no_record_and_no_row(
    service: Service, receiver: Receiver
) -> None:
    http, texts = service.http, []
    with structlog.testing.capture_logs() as logs:
        for status in (200, 404):
            receiver.status = status
            body = {"form": "slack", "url": f"{receiver.url}/{SECRET}?key={SECRET}"}
            made = await http.post(DIGESTS, json=body)
            one = f"{DIGESTS}/{made.json()['id']}"
            tried = await http.post(f"{one}/test")
            texts += [made.text, tried.text, (await http.put(one, json=body)).text]
        refused = await http.put(one, json={**body, "timeZone": "Nowhere"})
        assert refused.status_code == 400
        texts += [refused.text, (await http.get(DIGESTS)).text, json.dumps(await records(service))]
    assert receiver.count(f"/{SECRET}") == 2
    for row in await service.state.database.all("SELECT * FROM digests"):
        texts += [str(bytes(one) if isinstance(one, memoryview) else one) for one in row]
    assert not [text for text in (*texts, str(logs)) if SECRET in text]


async def test_changes_of_digests_are_in_the_audit(service: Service, receiver: Receiver) -> None:
    http = service.http
    body = {"owner": "group:shop", "form": "slack", "url": receiver.url}
    made = (await http.post(DIGESTS, json=body)).json()
    one = f"{DIGESTS}/{made['id']}"
    await http.put(one, json={"form": "teams"})
    await http.delete(one)
    first = {"owner": "group:default/shop", "form": "slack", "url": receiver.url}
    later = {"owner": None, "form": "teams", "url": receiver.url}
    assert [
        (each["action"], each["object"], each["detail"]) for each in await records(service)
    ] == [
        ("digest.create", made["id"], first),
        ("digest.replace", made["id"], later),
        ("digest.delete", made["id"], later),
    ]


@ON_SQLITE
async def test_a_digest_is_for_slack_unless_said_and_keeps_its_form(
    service: Service, receiver: Receiver
) -> None:
    usual = (await service.http.post(DIGESTS, json={"url": receiver.url})).json()
    body = {"url": receiver.url, "form": "teams"}
    teams = (await service.http.post(DIGESTS, json=body)).json()
    changed = await service.http.put(f"{DIGESTS}/{teams['id']}", json={"hour": 9})
    assert (usual["form"], changed.json()["form"]) == ("slack", "teams")


async def test_a_test_is_sent_now_and_says_what_the_receiver_answered(
    service: Service, receiver: Receiver
) -> None:
    http = service.http
    made = (await http.post(DIGESTS, json={"form": "teams", "url": receiver.url})).json()
    good = (await http.post(f"{DIGESTS}/{made['id']}/test")).json()
    assert (good["delivered"], good["status"], good["error"]) == (True, 204, None)
    [message] = receiver.messages
    [attachment] = message.content["attachments"]
    told = [block["text"] for block in attachment["content"]["body"]]
    assert told == [
        "Test: checks of the whole catalog",
        "2026-11-21 to 2026-11-21: nothing changed",
        "As of 2026-11-21 12:00 UTC",
    ]
    receiver.status = 410
    bad = (await http.post(f"{DIGESTS}/{made['id']}/test")).json()
    assert (bad["delivered"], bad["status"], bad["error"]) == (False, 410, "answered 410")


@ON_SQLITE
async def test_digests_that_do_not_fit_are_refused(
    service: Service, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    body = {"owner": "group:shop", "form": "slack", "url": receiver.url}
    cases: list[dict[str, object]] = [
        {"url": "ftp://example.com"},
        {"url": "https://10.0.0.1/hook"},
        {"url": None},
        {"form": "irc"},
        {"form": None},
        {"owner": "a:b:c/d/e"},
        {"cadence": "hourly"},
        {"day": "someday"},
        {"hour": 24},
        {"hour": -1},
        {"timeZone": "Nowhere/Else"},
        {"timeZone": "../../etc/passwd"},
        {"token": "mine"},
    ]
    for wrong in cases:
        with subtests.test(wrong=wrong):
            answer = await service.http.post(DIGESTS, json={**body, **wrong})
            assert answer.status_code == 400, answer.text
            assert (await service.http.get(DIGESTS)).json() == {"digests": []}


@ON_SQLITE
async def test_an_address_that_is_not_allowed_any_more_gets_nothing(
    start: StartService, receiver: Receiver
) -> None:
    allowed = await start(outgoing_networks=NETWORKS)
    made = await allowed.http.post(DIGESTS, json={"form": "slack", "url": receiver.url})
    service = await start()
    tried = (await service.http.post(f"{DIGESTS}/{made.json()['id']}/test")).json()
    assert (tried["delivered"], tried["status"]) == (False, 0)
    assert receiver.messages == []


@ON_SQLITE
@pytest.mark.parametrize("missing", [CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE])
async def test_only_who_may_read_results_and_manage_operations_manages_digests(
    service: Service, receiver: Receiver, missing: str
) -> None:
    body = {"form": "slack", "url": receiver.url}
    one = f"{DIGESTS}/{(await service.http.post(DIGESTS, json=body)).json()['id']}"
    # Who reads facts reads results, and who manages tokens manages operations.
    names = PERMISSION_NAMES - {missing, "tech-insights.data-source.read", "access.token.manage"}
    async with service.client(await service.token(*names)) as http:
        answers = [
            await http.get(DIGESTS),
            await http.post(DIGESTS, json=body),
            await http.get(one),
            await http.put(one, json=body),
            await http.post(f"{one}/test"),
            await http.delete(one),
        ]
    assert [answer.status_code for answer in answers] == [403] * 6
    assert receiver.messages == []
