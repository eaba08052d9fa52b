"""`factbook webhooks` against a running service and a receiver."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest
from structlog.testing import capture_logs

from tests.cli.bridge import Run, commands
from tests.conftest import StartService
from tests.webhooks.receiver import NETWORKS, Receiver, receiving


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


async def created(factbook: Run, receiver: Receiver, *types: str) -> str:
    """The id of a new webhook."""
    options = [option for type_ in types for option in ("--type", type_)]
    made = await factbook("webhooks", "create", receiver.url, *options, "--json")
    assert made.exit_code == 0, made.output
    id_: str = json.loads(made.stdout)["id"]
    return id_


async def test_the_secret_alone_is_on_standard_output(factbook: Run, receiver: Receiver) -> None:
    made = await factbook("webhooks", "create", receiver.url)
    assert made.stdout.startswith("whsec_")
    assert len(made.stdout.split()) == 1
    assert "not shown again" in made.stderr
    listed = await factbook("webhooks", "list")
    assert "whsec_" not in listed.output


async def test_webhooks_are_listed_and_removed(factbook: Run, receiver: Receiver) -> None:
    id_ = await created(factbook, receiver, "source.down", "source.up")
    listed = await factbook("webhooks", "list")
    [line] = listed.stdout.splitlines()[1:]
    assert line.split()[:5] == [id_, receiver.url, "source.down,", "source.up", "enabled"]
    assert (await factbook("webhooks", "delete", id_)).stdout == f"Deleted: {id_}\n"
    assert json.loads((await factbook("webhooks", "list", "--json")).stdout) == []


async def test_a_test_says_what_came_of_it(factbook: Run, receiver: Receiver) -> None:
    id_ = await created(factbook, receiver)
    good = await factbook("webhooks", "test", id_)
    assert (good.exit_code, good.stdout[:15]) == (0, "Delivered: 204 ")
    receiver.status = 500
    bad = await factbook("webhooks", "test", id_, "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["status"] == 500
    assert bad.stderr.startswith("Error: The message was not delivered: ")


async def test_one_that_has_nothing_undelivered_is_shown_and_enabled(
    factbook: Run, receiver: Receiver
) -> None:
    id_ = await created(factbook, receiver)
    assert len((await factbook("webhooks", "show", id_)).stdout.splitlines()) == 1
    assert (
        json.loads((await factbook("webhooks", "show", id_, "--json")).stdout)["undelivered"] == []
    )
    enabled = await factbook("webhooks", "enable", id_)
    assert enabled.stdout == f"Enabled: {receiver.url}, 0 messages waiting.\n"


async def test_a_webhook_that_is_none_is_refused(factbook: Run, subtests: pytest.Subtests) -> None:
    for command in ["show", "test", "enable", "delete"]:
        with subtests.test(command=command):
            found = await factbook("webhooks", command, "nowhere")
            assert (found.exit_code, found.stdout) == (1, "")
            assert found.stderr.startswith("Error: ")


async def test_an_address_that_may_not_be_called_is_refused(factbook: Run) -> None:
    found = await factbook("webhooks", "create", "http://10.0.0.1/hook")
    assert (found.exit_code, found.stdout) == (1, "")
    assert "10.0.0.1" in found.stderr


async def test_an_odd_id_reaches_no_other_address(factbook: Run, subtests: pytest.Subtests) -> None:
    for odd in ["../tokens", "a/b", "%2e%2e", "\N{SNOWMAN}", "x" * 5_000, ".", ".."]:
        with subtests.test(odd=odd):
            found = await factbook("webhooks", "delete", odd)
            assert (found.exit_code, found.stdout) == (1, "")
            assert "webhook" in found.stderr.lower()


async def test_a_token_without_the_permission_is_told_so(start: StartService) -> None:
    service = await start()
    token = await service.token("catalog.entity.read")
    factbook = commands(service)
    for command in (["events"], ["webhooks", "list"], ["webhooks", "delete", "1"]):
        with capture_logs():
            found = await factbook(*command, "--token", token)
        assert (found.exit_code, found.stdout) == (3, ""), command
