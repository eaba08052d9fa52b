"""Pages of imports: parts, problems, and decisions on what is held."""

import pytest

from factbook.clock import HOUR
from factbook.errors import ConfigurationError
from factbook.importers.snapshot import ReadingProblem
from tests.importers.madeup import ImportWorld, known_to
from tests.importers.reading import PART, Imports, item, part
from tests.service import Service, component
from tests.web.markup import is_harmless
from tests.web.visiting import signed_in, words

IMPORTER = "/imports/fake"
PATH = f"{IMPORTER}/{PART}"


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
    assert "nothing was found, although there were entities before" in words(page)
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
    assert (answer.status_code, "has been read again" in answer.text) == (409, True)
    assert await imports.names() == ["a", "b"]


async def test_an_importer_has_a_page_with_all_that_is_known_of_it(service: Service) -> None:
    world = ImportWorld(service.state.database)
    known_to(service, world.system.importer(every=6 * HOUR))
    world.time.now = service.time.now
    broken = ReadingProblem("github.com/acme/shop", "is <b>not</b> YAML", "catalog-info.yaml", 7)
    world.system.parts = [part(item("a"), problems=[broken]), part(key="more")]
    await world.process.work()
    visitor = await signed_in(service)
    assert f'href="{IMPORTER}"' in await visitor.text("/imports")
    page = await visitor.text(IMPORTER)
    shown = words(page)
    assert "Cadence every 6 hours" in shown
    assert "Calls of the last run 1" in shown
    assert "github.com/acme/shop catalog-info.yaml:7 is <b>not</b> YAML" in shown
    assert "Runs Started State Took Calls Left now by cadence complete" in shown
    assert "Made in the settings" in shown
    assert f'href="{PATH}"' in page
    assert f'action="{IMPORTER}/run"' in page
    assert 'href="/sets/import%2Ffake%2Fall"' in page


async def test_the_page_of_an_importer_is_linked_from_what_it_brought(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(item("a")))
    visitor = await signed_in(service)
    for path in ("/sets/import%2Ffake%2Fall", "/catalog/component/default/a", PATH):
        assert f'href="{IMPORTER}"' in await visitor.text(path)
    await service.push("own", component("b"))
    assert "/imports/" not in await visitor.text("/catalog/component/default/b")


async def test_a_problem_of_a_file_leads_to_the_file(
    service: Service, imports: Imports, subtests: pytest.Subtests
) -> None:
    problem = ReadingProblem("github.com/acme/shop", "broken", "docs/catalog?.yaml", 7)
    elsewhere = ReadingProblem("github.com/acme/shop", "broken", "acme/other/a.yaml", 1)
    whole = ReadingProblem("github.com/acme/shop", "not found")
    visitor = await signed_in(service)
    cases: list[tuple[str, str | None]] = [
        ("github", "https://github.com/acme/shop/blob/HEAD/docs/catalog%3F.yaml#L7"),
        ("gitlab-own", "https://github.com/acme/shop/-/blob/HEAD/docs/catalog%3F.yaml#L7"),
        ("gitea", "https://github.com/acme/shop/src/branch/HEAD/docs/catalog%3F.yaml#L7"),
        ("aws", None),
        ("githubs", None),
    ]
    for importer, page in cases:
        with subtests.test(importer=importer):
            await imports.write_as(importer, part(problems=[problem, elsewhere, whole]))
            for path in (f"/imports/{importer}", f"/imports/{importer}/all"):
                found = await visitor.text(path)
                assert found.count('href="https://github.com') == (page is not None)
                assert page is None or f'href="{page}"' in found


@pytest.mark.parametrize(
    "origin", ["javascript:alert(1)/a/b", "a@evil.test/a/b", '"><script>/a/b', "//evil.test/a"]
)
async def test_what_others_name_an_origin_leads_nowhere_else(
    service: Service, imports: Imports, origin: str
) -> None:
    await imports.write_as("github", part(problems=[ReadingProblem(origin, "x", '"><b>/f', 1)]))
    visitor = await signed_in(service)
    page = await visitor.text("/imports/github")
    assert is_harmless(page)
    assert "evil.test/a/b/blob" not in page.replace("a%40evil.test", "")
    assert "<script>/a" not in page


async def test_held_removals_are_decided_on_the_page_of_the_importer(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(*(item(f"a{number}") for number in range(25))))
    await imports.write(part())
    visitor = await signed_in(service)
    page = await visitor.text(IMPORTER)
    assert "25 entities of 25 would be removed" in words(page)
    assert page.count('href="/catalog/component/default/a') == 20
    assert "And 5 more" in words(page)
    answer = await visitor.done(f"{PATH}/apply", seen=f"{imports.now}-25")
    assert "Removed: 25." in words(answer)
    assert "Keep them" not in answer
    assert await imports.names() == []
    viewer = await signed_in(service, "grace", role="viewer")
    await imports.write(part(item("b")))
    await imports.write(part())
    page = words(await viewer.text(IMPORTER))
    assert "1 entity of 1 would be removed. The removal is held because" in page
    assert "Keep it" not in page


@pytest.mark.parametrize("action", ["apply", "discard"])
async def test_an_importer_is_complete_when_nothing_is_held_any_more(
    service: Service, action: str
) -> None:
    world = ImportWorld(service.state.database)
    known_to(service, world.system.importer())
    await world.process.work()
    world.system.parts = [part()]
    world.time.advance(HOUR)
    await world.process.work()
    visitor = await signed_in(service)
    assert "fake held" in words(await visitor.text(IMPORTER))
    answer = await visitor.done(f"{PATH}/{action}", seen=f"{world.time()}-2")
    assert "fake complete" in words(answer)


async def test_a_part_that_is_not_read_any_more_is_told_as_such(service: Service) -> None:
    world = ImportWorld(service.state.database)
    known_to(service, world.system.importer())
    gone = ReadingProblem("", "gone with its part")
    world.system.parts = [part(item("a")), part(item("b"), key="old", problems=[gone])]
    await world.process.work()
    world.system.parts = [part(item("a"))]
    world.time.advance(HOUR)
    await world.process.work()
    page = words(await (await signed_in(service)).text(IMPORTER))
    assert "old complete no longer read" in page
    assert "gone with its part" not in page


async def test_what_no_importer_of_the_service_reads_has_a_page_too(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(item("a")))
    page = await (await signed_in(service)).text(IMPORTER)
    assert "The service runs no importer with this name" in words(page)
    assert "Run now" not in page


async def test_a_part_that_there_is_not_is_not_found(service: Service) -> None:
    visitor = await signed_in(service)
    for path in ("/imports/fake/none", "/imports/fake"):
        assert (await visitor.open(path)).status_code == 404
