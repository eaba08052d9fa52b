"""Findings of the doctor about importers."""

from factbook.clock import HOUR
from factbook.importers import records
from factbook.importers.records import RunOutcome
from factbook.storage import Database
from tests.importers.reading import Imports, item, part
from tests.operations.doctor.conftest import Look, of
from tests.service import NOON, Service
from tests.web.test_importers import made

SETTINGS = {
    "integrations": {"github": {"default": {"token": "ghp_of_tests"}}},
    "importers": {"github": {"default": {"organizations": ["acme"]}}},
    "outgoing_networks": [],
}


async def ended(database: Database, state: str, error: str = "") -> None:
    outcome = RunOutcome(state, error)
    await database.write(lambda tx: records.add_ended_run(tx, "github", NOON, outcome, NOON))


async def found(look: Look, now: int = NOON) -> list[tuple[str, str]]:
    return of(await look(quick=True, now=now, **SETTINGS), "importers")


async def test_an_importer_that_read_everything_in_time_is_well(
    database: Database, look: Look
) -> None:
    assert await found(look) == [("ok", "1 of 1 importers are well.")]
    await Imports(database).write_as("github", part(item("a")))
    await ended(database, "complete")
    assert await found(look) == [("ok", "1 of 1 importers are well.")]
    [(state, what)] = await found(look, NOON + 4 * HOUR)
    assert (state, what) == ("warning", "github last read everything 4 hours ago.")


async def test_an_importer_that_fails_is_a_problem_with_its_reason(
    database: Database, look: Look
) -> None:
    await ended(database, "failed", "github.com/acme: forbidden")
    assert await found(look) == [("problem", "github read nothing: github.com/acme: forbidden.")]
    await ended(database, "partial", "a page is missing")
    assert await found(look) == [("warning", "github did not read everything: a page is missing.")]


async def test_an_importer_under_another_key_is_told(service: Service, look: Look) -> None:
    await made(service)
    fits = of(await look(quick=True), "key")
    assert ("ok", "It opens the 1 sealed secrets of the database.") in fits
    told = await look(quick=True, token_key="another key of tests, also long enough")
    assert "importer github-acme" in str(of(told, "key"))
    assert ("problem", "github-acme cannot be used") in [
        (state, what.partition(":")[0]) for state, what in of(told, "importers")
    ]


async def test_a_mistake_in_the_settings_of_an_importer_is_a_problem(look: Look) -> None:
    wrong = {"github": {"default": {"organizations": ["acme"], "every": "soon"}}}
    told = of(await look(quick=True, **{**SETTINGS, "importers": wrong}), "configuration")
    assert ("problem", True) in [
        (state, what.startswith("importers.github.default: every has to be"))
        for state, what in told
    ]


async def test_removals_that_wait_are_told(database: Database, look: Look) -> None:
    imports = Imports(database)
    await imports.write_as("github", part(item("a"), item("b")))
    await imports.write_as("github", part())
    await ended(database, "held")
    assert await found(look) == [("warning", "github holds 2 removals that wait for a decision.")]
