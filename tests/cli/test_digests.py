"""`factbook digests` against a running service and a channel."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest
from structlog.testing import capture_logs

from tests.cli.bridge import Run, commands
from tests.conftest import StartService
from tests.webhooks.receiver import NETWORKS, Receiver, receiving

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SECRET = "T0B0hidden"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
async def factbook(start: StartService, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Run]:
    """Runs commands against a service that may call the receiver."""
    service = await start(outgoing_networks=NETWORKS)
    monkeypatch.setenv("FACTBOOK_TOKEN", await service.token())
    with capture_logs():
        yield commands(service)


async def created(factbook: Run, receiver: Receiver, *options: str) -> str:
    """The id of a new digest."""
    made = await factbook("digests", "create", f"{receiver.url}/{SECRET}", *options, "--json")
    assert made.exit_code == 0, made.output
    assert SECRET not in made.output
    id_: str = json.loads(made.stdout)["id"]
    return id_


async def test_digests_are_listed_changed_and_removed(factbook: Run, receiver: Receiver) -> None:
    id_ = await created(factbook, receiver, "--owner", "group:shop")
    listed = await factbook("digests", "list")
    [line] = listed.stdout.splitlines()[1:]
    assert line.split()[:7] == [
        *(id_, "group:default/shop", "slack", f"{receiver.url}/…"),
        *("monday", "8:00", "UTC"),
    ]
    changed = await factbook("digests", "change", id_, "--cadence", "daily", "--hour", "6")
    assert changed.stdout == f"{id_}: group:default/shop, every day 6:00 UTC.\n"
    options = ("--owner", "", "--form", "teams", "--time-zone", "Asia/Tokyo")
    changed = await factbook("digests", "change", id_, *options)
    assert changed.stdout == f"{id_}: everybody, every day 6:00 Asia/Tokyo.\n"
    assert (await factbook("digests", "delete", id_)).stdout == f"Deleted: {id_}\n"
    assert json.loads((await factbook("digests", "list", "--json")).stdout) == []


async def test_an_address_can_come_from_standard_input(factbook: Run, receiver: Receiver) -> None:
    made = await factbook("digests", "create", "-", "--json", input=f"{receiver.url}/{SECRET}\n")
    id_ = json.loads(made.stdout)["id"]
    assert (await factbook("digests", "test", id_)).exit_code == 0
    await factbook("digests", "change", id_, "--url", "-", input=f"{receiver.url}/other\n")
    await factbook("digests", "test", id_)
    assert [message.path for message in receiver.messages] == [f"/{SECRET}", "/other"]


async def test_a_test_says_what_came_of_it(factbook: Run, receiver: Receiver) -> None:
    id_ = await created(factbook, receiver)
    good = await factbook("digests", "test", id_)
    assert (good.exit_code, good.stdout[:15]) == (0, "Delivered: 204 ")
    receiver.status = 500
    bad = await factbook("digests", "test", id_, "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["status"] == 500
    assert bad.stderr == "Error: The message was not delivered: answered 500.\n"


async def test_a_digest_that_is_none_is_refused(factbook: Run, subtests: pytest.Subtests) -> None:
    for command in ["change", "test", "delete"]:
        with subtests.test(command=command):
            found = await factbook("digests", command, "nowhere")
            assert (found.exit_code, found.stdout) == (1, "")
            assert found.stderr == 'Error: There is no digest "nowhere".\n'


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["http://10.0.0.1/hook"], "10.0.0.1"),
        (["https://example.com/", "--time-zone", "Nowhere"], "timeZone"),
    ],
)
async def test_what_does_not_fit_is_refused(factbook: Run, given: list[str], told: str) -> None:
    found = await factbook("digests", "create", *given)
    assert (found.exit_code, found.stdout) == (1, "")
    assert told in found.stderr
