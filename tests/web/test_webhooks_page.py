"""The pages of webhooks: making one, seeing how it does, and a secret that is shown once."""

import re
from collections.abc import Iterator

import pytest

from factbook.clock import HOUR
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.visiting import Browser, signed_in, words
from tests.webhooks.receiver import NETWORKS, Receiver, receiving

PATH = "/administration/webhooks"
ADDRESS = "https://events.example.com/factbook"
SHOWN = "https://events.example.com/…"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{44}")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


async def made(visitor: Browser, url: str = ADDRESS, **fields: object) -> str:
    """The path of the page of a new webhook."""
    await visitor.open(PATH)
    answer = await visitor.send(PATH, url=url, **fields)
    assert answer.status_code == 201, words(answer.text)
    found = re.search(rf'href="({PATH}/[0-9a-f]+)"', answer.text)
    assert found
    return found[1]


async def test_without_a_webhook_it_says_what_one_is_for(service: Service) -> None:
    shown = words(await (await signed_in(service)).text(PATH))
    assert "No webhook yet" in shown
    assert "source.down Everything failed in a full run of a source." in shown


async def test_the_secret_is_shown_once(service: Service) -> None:
    visitor = await signed_in(service)
    await visitor.open(PATH)
    answer = await visitor.send(PATH, url=ADDRESS)
    assert answer.status_code == 201
    [secret] = set(SECRET.findall(answer.text))
    one = await made(visitor)
    for path in (PATH, one, "/administration/audit"):
        text = await visitor.text(path)
        assert secret not in text
        assert "whsec_" not in text


async def test_a_webhook_is_listed_with_the_types_that_were_ticked(service: Service) -> None:
    visitor = await signed_in(service)
    one = await made(visitor, types=["source.up", "set.replaced"])
    assert f"{SHOWN} set.replaced, source.up enabled never none" in words(await visitor.text(PATH))
    shown = words(await visitor.text(one))
    assert "Events set.replaced, source.up" in shown
    assert "Made now by user:ada" in shown


async def test_with_nothing_ticked_every_event_is_sent(service: Service) -> None:
    visitor = await signed_in(service)
    await made(visitor)
    assert f"{SHOWN} every event" in words(await visitor.text(PATH))


async def test_what_is_wrong_is_told_and_the_form_kept(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    await visitor.open(PATH)
    cases: list[tuple[dict[str, str], str]] = [
        ({"url": "nothing"}, "has to be an address that begins with https://"),
        ({"url": "http://127.0.0.1/hook"}, "127.0.0.1"),
        ({"url": ADDRESS, "types": "webhook.test"}, "There is no such event type."),
        ({}, "has to be an address"),
    ]
    for fields, message in cases:
        with subtests.test(fields=fields):
            answer = await visitor.send(PATH, **fields)
            assert answer.status_code == 400
            assert message in words(answer.text)
            assert f'value="{fields.get("url", "")}"' in answer.text
            assert await service.state.database.all("SELECT id FROM webhook_endpoints") == []


async def test_a_test_says_what_the_receiver_answered(
    start: StartService, receiver: Receiver
) -> None:
    visitor = await signed_in(await start(outgoing_networks=NETWORKS))
    one = await made(visitor, receiver.url)
    assert "The receiver answered 204 after" in words(await visitor.done(f"{one}/test"))
    receiver.status = 500
    failed = await visitor.send(f"{one}/test")
    assert failed.status_code == 200
    assert "The message was not delivered: answered 500." in words(failed.text)


async def test_what_waits_to_be_sent_again_is_told_alike_on_both_pages(
    start: StartService, receiver: Receiver
) -> None:
    service = await start(outgoing_networks=NETWORKS)
    visitor = await signed_in(service)
    one = await made(visitor, receiver.url, types=["set.replaced"])
    courier = service.application.courier(service.state.database)
    receiver.status = 500
    await service.push("shop", component("web"))
    await courier.drain()
    listed, shown = words(await visitor.text(PATH)), words(await visitor.text(one))
    await courier.stop()
    assert "set.replaced behind never 1 waiting, 0 given up" in listed
    assert "State behind" in shown
    assert "enabled" not in shown
    assert "No messages were given up 1 message waits to be sent or retried." in shown
    assert "Nothing is missing" not in shown


async def test_what_was_given_up_is_listed_and_sent_again(
    start: StartService, receiver: Receiver
) -> None:
    service = await start(outgoing_networks=NETWORKS)
    visitor = await signed_in(service)
    one = await made(visitor, receiver.url, types=["set.replaced"])
    courier = service.application.courier(service.state.database)
    receiver.status = 410
    await service.push("shop", component("web"))
    await courier.drain()
    assert "disabled" in words(await visitor.text(PATH))
    assert "answered 410" in words(await visitor.text(one))
    receiver.status = 204
    service.time.advance(HOUR)
    assert "The webhook is enabled." in words(await visitor.done(f"{one}/enable"))
    await courier.drain()
    await courier.stop()
    assert ("set.replaced", "shop") in receiver.said[1:]
    assert "Last delivered now" in words(await visitor.text(one))


async def test_a_webhook_is_deleted(service: Service) -> None:
    visitor = await signed_in(service)
    one = await made(visitor)
    await visitor.open(one)
    assert "The webhook was deleted." in words(await visitor.done(f"{one}/delete"))
    for answer in (await visitor.open(one), await visitor.send(f"{one}/test")):
        assert answer.status_code == 404


async def test_a_viewer_sees_no_webhooks(service: Service) -> None:
    one = await made(await signed_in(service))
    viewer = await signed_in(service, "vic", "viewer")
    for path in (PATH, one):
        await viewer.text(path, 403)
    assert "Webhooks" not in words(await viewer.text("/data-sources"))
    for path in (PATH, f"{one}/test", f"{one}/enable", f"{one}/delete"):
        assert (await viewer.send(path, url=ADDRESS)).status_code == 403
