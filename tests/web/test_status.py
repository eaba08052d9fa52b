"""Administration → Status: how the service is doing, as far as it can be read."""

import re

import pytest

from factbook import __version__
from factbook.clock import MINUTE
from factbook.importers import records
from factbook.scheduling import housekeeping, lease
from factbook.storage import Transaction
from factbook.storage.migrations import list_migrations
from tests.conftest import StartService
from tests.service import NOON, Service
from tests.web.markup import HOSTILE, is_harmless
from tests.web.visiting import browser, signed_in, words

PATH = "/status"
PARTS = ["Process", "Database", "Read replica", "Queues", "Checks", "Housekeeping", "Workers"]
PARTS.append("Rights of groups")


def titles(page: str) -> list[str]:
    """The titles of the parts, in their order."""
    return re.findall(r'<h2 id="part-\d+">(.*?)</h2>', page)


async def test_only_administrators_see_the_status(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    assert (await vic.open(PATH)).status_code == 403
    assert f'href="{PATH}"' not in await vic.text("/administration/account")
    assert (await browser(service).open(PATH)).status_code == 303
    ada = await signed_in(service)
    assert f'href="{PATH}"' in await ada.text("/administration/account")


async def test_the_status_tells_the_version_the_database_and_every_part(service: Service) -> None:
    ada = await signed_in(service)
    page = await ada.text(PATH)
    assert titles(page) == PARTS
    text, newest = words(page), list_migrations()[-1][:4]
    kind = "SQLite" if service.database_url.startswith("sqlite") else "PostgreSQL"
    assert f"Version {__version__}" in text
    assert re.search(rf"Kind {kind} \d+\.\d+.* Newest migration {newest} Size [\d,]+\.\d MB", text)
    assert "Not applied" not in text
    assert "Replica none is configured" in text
    assert "Publication of checks settled Grading of scorecards settled" in text
    assert "unknown" not in text


async def test_what_waits_is_counted_with_its_age(service: Service) -> None:
    def wait(transaction: Transaction) -> None:
        records.give_hints(transaction, "github", ["a", "b"], NOON - 5 * MINUTE)

    await service.state.database.write(wait)
    text = words(await (await signed_in(service)).text(PATH))
    assert "Batches of collection waiting, the oldest since 0" in text
    assert re.search(r"Hints for importers waiting, the oldest since 2 \d+ minutes ago", text)


async def test_housekeeping_tells_what_succeeded_and_what_fails_and_why(service: Service) -> None:
    def note(transaction: Transaction) -> None:
        housekeeping.record_task_end(transaction, "audit", None, NOON - MINUTE)
        housekeeping.record_task_end(transaction, "events", "disk is full", NOON - 2 * MINUTE)

    await service.state.database.write(note)
    text = words(await (await signed_in(service)).text(PATH))
    assert "audit succeeded 1 minute ago" in text
    assert "events failed: disk is full 2 minutes ago" in text


async def test_it_is_told_who_collects_and_whose_lease_has_lapsed(service: Service) -> None:
    database = service.state.database
    await lease.claim_lease(database, "collector", "one.example 7", NOON, MINUTE)
    await lease.claim_lease(database, "housekeeping", "two.example 8", NOON - 2 * MINUTE, MINUTE)
    text = words(await (await signed_in(service)).text(PATH))
    assert "Collection one.example 7, held until" in text
    assert "Housekeeping two.example 8, lapsed" in text


async def test_a_part_that_cannot_be_read_is_unknown_beside_the_others(service: Service) -> None:
    ada = await signed_in(service)
    await service.state.database.write(lambda tx: tx.run("DROP TABLE housekeeping"))
    page = await ada.text(PATH)
    assert titles(page) == PARTS
    text = words(page)
    assert re.search(r"Housekeeping unknown It could not be read: \w+, see the log\. Workers", text)
    assert text.count("unknown") == 1
    assert "no such table" not in text


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_replica_that_cannot_be_reached_is_told(start: StartService) -> None:
    service = await start(replica_url="postgresql://nobody:secret@127.0.0.1:1/none")
    ada = await signed_in(service)
    # A read that a replica may serve; the primary does.
    await ada.text("/catalog")
    page = await ada.text(PATH)
    assert titles(page) == PARTS
    text = words(page)
    told = r"Read replica State (\S.*) Lag unknown: \1 Reads it served 0 Reads the primary"
    assert re.search(told, text)
    assert "State serves reads" not in text
    assert "secret" not in text


async def test_texts_that_mean_harm_are_shown_as_text(service: Service) -> None:
    def note(transaction: Transaction) -> None:
        housekeeping.record_task_end(transaction, HOSTILE, HOSTILE, NOON)

    database = service.state.database
    await database.write(note)
    await lease.claim_lease(database, "collector", HOSTILE, NOON, MINUTE)
    page = await (await signed_in(service)).text(PATH)
    assert "&lt;" in page
    assert is_harmless(page)
