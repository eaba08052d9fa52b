"""The pages of digests: making one, changing it, and an address that is never shown."""

import re
from collections.abc import Iterator

import pytest

from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import Browser, signed_in, words
from tests.webhooks.receiver import NETWORKS, Receiver, receiving

PATH = "/administration/digests"
SECRET = "T0B0hidden"
ADDRESS = f"https://hooks.example.com/services/{SECRET}"
SHOWN = "https://hooks.example.com/…"
FIELDS = {"form": "slack", "day": "monday", "hour": "8", "time_zone": "UTC"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


async def made(visitor: Browser, url: str = ADDRESS, **fields: str) -> str:
    """The path of the page of a new digest."""
    await visitor.open(PATH)
    answer = await visitor.send(PATH, url=url, **{**FIELDS, **fields})
    assert answer.status_code == 303, words(answer.text)
    return answer.headers["location"]


async def test_without_a_digest_it_says_what_one_is_for(service: Service) -> None:
    shown = words(await (await signed_in(service)).text(PATH))
    assert "No digest yet" in shown
    assert "Digests" in shown


async def test_a_digest_is_listed_with_whom_it_is_about_and_when_it_is_sent(
    service: Service,
) -> None:
    visitor = await signed_in(service)
    one = await made(visitor, owner="group:shop", time_zone="Europe/Paris")
    await made(visitor, form="teams", day="daily", hour="17")
    listed = words(await visitor.text(PATH))
    assert f"The whole catalog Microsoft Teams, {SHOWN} nothing sent yet never" in listed
    assert "Every day, 17:00 UTC" in listed
    assert "group:shop" in listed
    shown = words(await visitor.text(one))
    assert "When Mondays, 08:00 Europe/Paris" in shown
    assert "Made now by user:ada" in shown


async def test_no_page_and_no_record_has_the_address(service: Service) -> None:
    visitor = await signed_in(service)
    one = await made(visitor)
    wrong = await visitor.send(PATH, url=ADDRESS, **{**FIELDS, "time_zone": "Nowhere"})
    assert wrong.status_code == 400
    assert "Time zone: has to be the name of a time zone" in words(wrong.text)
    assert "Type the address again" in words(wrong.text)
    changed = await visitor.send(one, url=ADDRESS, **{**FIELDS, "time_zone": "Nowhere"})
    assert changed.status_code == 400
    texts = [wrong.text, changed.text]
    texts += [await visitor.text(path) for path in (PATH, one, "/administration/audit")]
    assert not [text for text in texts if SECRET in text]


async def test_a_change_without_an_address_keeps_the_one_there_is(
    start: StartService, receiver: Receiver
) -> None:
    visitor = await signed_in(await start(outgoing_networks=NETWORKS))
    one = await made(visitor, f"{receiver.url}/{SECRET}")
    fields = {**FIELDS, "form": "teams", "day": "friday", "owner": "shop"}
    assert (await visitor.send(one, url="", **fields)).status_code == 303
    shown = words(await visitor.text(one))
    assert "The digest was saved." in shown
    assert "Digest of group:shop Microsoft Teams" in shown
    assert "Fridays, 08:00 UTC" in shown
    assert "The channel answered 204 after" in words(await visitor.done(f"{one}/test"))
    assert [message.path for message in receiver.messages] == [f"/{SECRET}"]
    receiver.status = 500
    failed = await visitor.send(f"{one}/test")
    assert failed.status_code == 200
    assert "The message was not delivered: answered 500." in words(failed.text)


async def test_what_is_wrong_is_told_and_the_form_kept(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    await visitor.open(PATH)
    cases: list[tuple[dict[str, str], str]] = [
        ({"url": "nothing"}, "Address: has to be an address that begins with https://"),
        ({"url": ""}, "Address: has to be"),
        ({"url": "http://127.0.0.1/hook"}, "127.0.0.1"),
        ({"owner": "component:web"}, "Group: has to be a group or a user"),
        ({"day": "someday"}, "The form has a value that is not offered."),
        ({"hour": "-1"}, "The form has a value that is not offered."),
        ({"form": "irc"}, "The form has a value that is not offered."),
    ]
    for fields, message in cases:
        with subtests.test(fields=fields):
            answer = await visitor.send(
                PATH, **{"url": ADDRESS, "owner": "group:shop", **FIELDS, **fields}
            )
            assert answer.status_code == 400
            assert message in words(answer.text)
            assert re.search(
                rf'name="owner" value="{fields.get("owner", "group:shop")}"', answer.text
            )
            assert await service.state.database.all("SELECT id FROM digests") == []


async def test_a_digest_is_deleted(service: Service) -> None:
    visitor = await signed_in(service)
    one = await made(visitor)
    await visitor.open(one)
    assert "The digest was deleted." in words(await visitor.done(f"{one}/delete"))
    for answer in (await visitor.open(one), await visitor.send(f"{one}/test")):
        assert answer.status_code == 404


async def test_a_viewer_sees_no_digests(service: Service) -> None:
    one = await made(await signed_in(service))
    viewer = await signed_in(service, "vic", "viewer")
    for path in (PATH, one):
        await viewer.text(path, 403)
    assert "Digests" not in words(await viewer.text("/data-sources"))
    for path in (PATH, one, f"{one}/test", f"{one}/delete"):
        assert (await viewer.send(path, url=ADDRESS, **FIELDS)).status_code == 403
