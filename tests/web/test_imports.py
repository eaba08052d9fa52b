"""Pages of imports: parts, problems, and decisions on what is held."""

import pytest

from factbook.errors import ConfigurationError
from factbook.importers.snapshot import ReadingProblem
from tests.importers.madeup import ImportWorld, known_to
from tests.importers.reading import PART, Imports, item, part
from tests.service import Service
from tests.web.visiting import signed_in, words

PATH = f"/imports/fake/{PART}"


@pytest.fixture
def imports(service: Service) -> Imports:
    return Imports(service.state.database)


async def test_without_imports_the_page_says_how_to_begin(service: Service) -> None:
    visitor = await signed_in(service)
    assert "factbook import github --org acme --plan" in await visitor.text("/imports")
    assert 'href="/imports"' in await visitor.text("/")


async def test_an_importer_is_shown_with_its_runs_and_runs_when_it_is_asked(
    service: Service,
) -> None:
    world = ImportWorld(service.state.database)
    known_to(service, world.system.importer())
    visitor = await signed_in(service)
    page = words(await visitor.text("/imports"))
    assert "fake fake new never never now 0 0" in page
    world.time.now = service.time.now
    world.system.fault = ConfigurationError("the <i>account</i> is closed")
    await world.process.work()
    page = await visitor.text("/imports")
    assert "the &lt;i&gt;account&lt;/i&gt; is closed" in page
    assert "failed" in words(page)
    asked = await visitor.send("/imports/fake/run")
    assert (asked.status_code, (await world.last()).reason) == (303, "asked")
    assert "waiting" in words(await visitor.text("/imports"))
    assert (await visitor.send("/imports/none/run")).status_code == 404


async def test_who_only_looks_cannot_ask_for_a_run(service: Service) -> None:
    known_to(service)
    visitor = await signed_in(service, role="viewer")
    assert "Run now" not in await visitor.text("/imports")
    assert (await visitor.send("/imports/fake/run")).status_code == 403


async def test_an_empty_catalog_offers_an_import(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/catalog")
    assert "factbook import github --org acme --plan" in page
    assert 'href="/imports">Import' in page


async def test_a_part_is_shown_with_its_problems_and_its_entities(
    service: Service, imports: Imports
) -> None:
    problem = ReadingProblem("acme/shop", "is <b>not</b> YAML", "catalog-info.yaml", 7)
    await imports.write(part(item("a"), problems=[problem]))
    visitor = await signed_in(service)
    assert f'href="{PATH}"' in await visitor.text("/imports")
    page = await visitor.text(PATH)
    assert "acme/shop catalog-info.yaml:7" in page
    assert "<b>not" not in page
    assert "is <b>not</b> YAML" in words(page)
    entities = await visitor.text("/sets/import%2Ffake%2Fall")
    assert 'href="/catalog/component/default/a"' in entities
    assert "fake%2Fall/push" not in entities
    assert "revision 1" in await visitor.text("/sets/import%2Ffake%2Fall/revisions")


async def test_held_removals_are_shown_and_applied(service: Service, imports: Imports) -> None:
    await imports.write(part(item("a")))
    await imports.write(part())
    visitor = await signed_in(service)
    page = await visitor.text(PATH)
    assert 'href="/catalog/component/default/a"' in page
    assert "nothing was found where there was something" in words(page)
    answer = await visitor.send(f"{PATH}/apply", seen=f"{imports.now}-1")
    assert (answer.status_code, await imports.names()) == (303, [])


async def test_held_removals_are_discarded(service: Service, imports: Imports) -> None:
    await imports.write(part(item("a")))
    await imports.write(part())
    visitor = await signed_in(service)
    await visitor.open(PATH)
    await visitor.send(f"{PATH}/discard", seen=f"{imports.now}-1")
    assert (await imports.record()).held == []
    assert await imports.names() == ["a"]


@pytest.mark.parametrize("action", ["apply", "discard"])
async def test_what_was_read_again_is_not_decided_unseen(
    service: Service, imports: Imports, action: str
) -> None:
    await imports.write(part(item("a"), item("b")))
    await imports.write(part())
    seen = f"{imports.now}-2"
    visitor = await signed_in(service)
    await visitor.open(PATH)
    await imports.write(part())
    answer = await visitor.send(f"{PATH}/{action}", seen=seen)
    assert (answer.status_code, "was read again" in answer.text) == (409, True)
    assert await imports.names() == ["a", "b"]


async def test_a_part_that_there_is_not_is_not_found(service: Service) -> None:
    visitor = await signed_in(service)
    assert (await visitor.open("/imports/fake/none")).status_code == 404
