"""A process that is killed amid a publication: another one goes on where it was."""

import asyncio
import sys
from pathlib import Path

import pytest

from factbook.checks.definitions.publications import LAST_PLACE
from factbook.checks.results import evaluator
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.checks.verification import verify
from tests.service import Time

pytestmark = pytest.mark.both_databases

_COMPONENTS = 250
_CHECKS = 20
_WORK = """
import asyncio, sys
from factbook.checks.results import evaluator
from factbook.storage.database_url import open_database
from tests.service import Time

async def work():
    database = await open_database(sys.argv[1], connections=3)
    assert await evaluator.evaluate_pending(database, Time())
    print("worked", flush=True)
    await asyncio.Event().wait()

asyncio.run(work())
"""


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """More components than the first batch takes."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(**{f"c{number:03}": "red" for number in range(_COMPONENTS)})
    await catalog.record("c000", on=True)
    return catalog


@pytest.mark.slow
async def test_a_publication_goes_on_where_a_process_was_killed(
    catalog: CheckedCatalog, database_url: str
) -> None:
    checks = [a_check(f"on{number}", leaf("on", "isKnown")) for number in range(_CHECKS)]
    await catalog.publish(*checks, settled=False)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WORK, database_url, cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    while (line := await process.stdout.readline()) != b"worked\n":
        assert line
    process.kill()
    await process.wait()
    database = catalog.database
    [begun] = await database.one("SELECT MIN(evaluated_up_to) FROM checks") or (0,)
    assert 0 < begun < LAST_PLACE
    assert not (await verify(database, catalog.time()))["component:default/c000"].states
    await evaluator.finish_publications(database, catalog.time)
    found = await verify(database, catalog.time())
    assert {len(one.states) for one in found.values()} == {_CHECKS}
