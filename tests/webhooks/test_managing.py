"""Managing webhooks: who may, which addresses, and that a secret is given once."""

import json

import httpx2
import pytest
import structlog

from factbook.auth.permissions import EVENTS_READ, OPERATIONS_MANAGE, PERMISSION_NAMES, TOKEN_MANAGE
from tests.api.auditing import records
from tests.service import NOON, Service, component
from tests.webhooks.conftest import HOOKS, StartWorld, World
from tests.webhooks.receiver import NETWORKS, Receiver, verified

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
NOON_ISO = "2026-11-21T12:00:00.000+00:00"


@pytest.mark.both_databases
async def test_a_webhook_is_made_shown_and_removed(world: World, receiver: Receiver) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    secret = hook.pop("secret")
    assert secret.startswith("whsec_")
    assert len(secret) == len("whsec_") + 44
    assert hook == {
        "id": hook["id"],
        "url": receiver.url,
        "types": ["set.replaced"],
        "createdAt": NOON_ISO,
        "createdBy": "user:default/tester",
        "lastSuccessAt": None,
        "lastFailureAt": None,
        "lastError": None,
        "disabledAt": None,
        "waiting": 0,
        "givenUp": 0,
    }
    http = world.service.http
    assert (await http.get(HOOKS)).json() == {"webhooks": [hook]}
    assert await world.shown(hook) == {**hook, "undelivered": []}
    assert (await http.delete(f"{HOOKS}/{hook['id']}")).status_code == 204
    for answer in (
        await http.get(f"{HOOKS}/{hook['id']}"),
        await http.delete(f"{HOOKS}/{hook['id']}"),
        await http.post(f"{HOOKS}/{hook['id']}/enable"),
        await http.post(f"{HOOKS}/{hook['id']}/test"),
    ):
        assert answer.status_code == 404
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    assert receiver.messages == []


async def test_a_secret_is_neither_stored_in_the_clear_nor_shown_again_nor_logged(
    world: World, receiver: Receiver
) -> None:
    with structlog.testing.capture_logs() as logs:
        secret = (await world.hook(receiver.url))["secret"]
        await world.service.push("shop", component("web"))
        await world.courier.drain()
    [row] = await world.database.all("SELECT * FROM webhook_endpoints")
    texts = [str(bytes(one) if isinstance(one, memoryview) else one) for one in row]
    said = [str(logs), *texts, (await world.service.http.get(HOOKS)).text]
    said += [json.dumps(await records(world.service)), str(receiver.messages)]
    assert not [text for text in said if secret in text or secret.removeprefix("whsec_") in text]


async def test_changes_of_webhooks_are_in_the_audit(world: World, receiver: Receiver) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    await world.service.http.post(f"{HOOKS}/{hook['id']}/enable")
    await world.service.http.delete(f"{HOOKS}/{hook['id']}")
    found = await records(world.service)
    detail = {"url": receiver.url, "types": ["set.replaced"]}
    assert [(one["action"], one["object"], one["detail"]) for one in found] == [
        ("webhook.create", hook["id"], detail),
        ("webhook.enable", hook["id"], detail),
        ("webhook.delete", hook["id"], detail),
    ]


async def test_a_test_says_what_the_receiver_answered(world: World, receiver: Receiver) -> None:
    hook = await world.hook(receiver.url)
    test = f"{HOOKS}/{hook['id']}/test"
    good = (await world.service.http.post(test)).json()
    assert (good["delivered"], good["status"], good["error"]) == (True, 204, None)
    receiver.status = 302
    bad = (await world.service.http.post(test)).json()
    assert (bad["delivered"], bad["status"], bad["error"]) == (False, 302, "answered 302")
    [first, _] = receiver.messages
    assert first.content == {
        "type": "webhook.test",
        "timestamp": NOON_ISO,
        "data": {"webhook": hook["id"]},
    }
    assert verified(first, hook["secret"], NOON // 1000)


@pytest.mark.spec("network.outgoing-guard-covers-webhooks")
@ON_SQLITE
async def test_addresses_that_are_not_public_are_refused_unless_a_setting_allows_them(
    service: Service, receiver: Receiver
) -> None:
    for url in (
        receiver.url,
        "https://127.0.0.1/x",
        "https://2130706433/",
        "https://10.1.2.3/hook",
        "https://169.254.169.254/latest",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://localhost/",
        "http://93.184.216.34/",
    ):
        answer = await service.http.post(HOOKS, json={"url": url})
        assert answer.status_code == 400, url
        assert "outgoing_networks" in answer.json()["error"]["message"], url
    assert (await service.http.get(HOOKS)).json() == {"webhooks": []}
    assert receiver.messages == []


@pytest.mark.spec("network.outgoing-guard-covers-webhooks")
async def test_an_address_that_is_not_allowed_any_more_gets_nothing(
    start_world: StartWorld, receiver: Receiver
) -> None:
    allowed = await start_world(outgoing_networks=NETWORKS)
    hook = await allowed.hook(receiver.url, "set.replaced")
    await allowed.service.push("shop", component("web"))
    world = await start_world()
    await world.courier.drain()
    assert receiver.messages == []
    assert "outgoing_networks" in (await world.shown(hook))["lastError"]
    tried = (await world.service.http.post(f"{HOOKS}/{hook['id']}/test")).json()
    assert (tried["delivered"], tried["status"]) == (False, 0)


@ON_SQLITE
async def test_webhooks_that_do_not_fit_are_refused(
    subtests: pytest.Subtests, service: Service
) -> None:
    bodies: list[dict[str, object]] = [
        {},
        {"url": "ftp://example.com"},
        {"url": "https://"},
        {"url": "https://user:secret@example.com/"},
        {"url": "https://example.com/#part"},
        {"url": "https://example.com/a b"},
        {"url": "https://exämple.com/"},
        {"url": "https://example.com:99999/"},
        {"url": "https://example.com/" + "x" * 2000},
        {"url": "https://example.com/", "types": ["set.pushed"]},
        {"url": "https://example.com/", "secret": "whsec_mine"},
    ]
    for body in bodies:
        with subtests.test(body=body):
            answer = await service.http.post(HOOKS, json=body)
            assert answer.status_code == 400, answer.text
            assert "secret@" not in answer.text


@ON_SQLITE
async def test_there_are_not_more_webhooks_than_a_service_can_serve(
    world: World, receiver: Receiver
) -> None:
    for _ in range(50):
        await world.hook(receiver.url)
    answer = await world.service.http.post(HOOKS, json={"url": receiver.url})
    assert answer.status_code == 409


@ON_SQLITE
@pytest.mark.parametrize("missing", [(EVENTS_READ,), (OPERATIONS_MANAGE, TOKEN_MANAGE)])
async def test_only_who_may_read_events_and_manage_operations_manages_webhooks(
    world: World, receiver: Receiver, missing: tuple[str, ...]
) -> None:
    hook = await world.hook(receiver.url)
    one = f"{HOOKS}/{hook['id']}"
    async with world.service.client(
        await world.service.token(*PERMISSION_NAMES.difference(missing))
    ) as http:
        answers: list[httpx2.Response] = [
            await http.get(HOOKS),
            await http.post(HOOKS, json={"url": receiver.url}),
            await http.get(one),
            await http.post(f"{one}/test"),
            await http.post(f"{one}/enable"),
            await http.delete(one),
        ]
    assert [answer.status_code for answer in answers] == [403] * 6
    assert all(missing[0] in answer.text for answer in answers)
    assert receiver.messages == []


@ON_SQLITE
async def test_a_secret_that_was_sealed_under_another_key_is_told(
    start_world: StartWorld, receiver: Receiver
) -> None:
    first = await start_world(outgoing_networks=NETWORKS)
    hook = await first.hook(receiver.url, "set.replaced")
    await first.service.push("shop", component("web"))
    world = await start_world(outgoing_networks=NETWORKS, token_key="another key " * 4)
    await world.courier.drain()
    assert receiver.messages == []
    assert "another token_key" in (await world.shown(hook))["lastError"]
    answer = await world.service.http.post(f"{HOOKS}/{hook['id']}/test")
    assert answer.status_code == 409
