"""What one revision of a set changed, entity by entity."""

import pytest

from factbook.catalog.store import revisions
from factbook.errors import NotFoundError
from tests.service import Service, component


async def found(service: Service, number: int) -> dict[str, str]:
    page = await revisions.page_changes(service.state.database, "all", number, "", 100)
    return {each.ref.rpartition("/")[2]: each.kind for each in page.items}


async def test_each_revision_knows_its_own_changes(service: Service) -> None:
    await service.push("all", component("a"), component("b"))
    await service.push("all", component("a", type="library"), component("c"))
    await service.push("all", component("b"), component("a", type="website"))
    assert await found(service, 1) == {"a": "added", "b": "added"}
    assert await found(service, 2) == {"a": "updated", "b": "removed", "c": "added"}
    assert await found(service, 3) == {"a": "updated", "b": "added", "c": "removed"}


async def test_documents_are_those_before_and_after_that_revision(service: Service) -> None:
    for type_ in ("one", "two", "three"):
        await service.push("all", component("a", type=type_))
    for number, before, after in ((2, "one", "two"), (3, "two", "three")):
        page = await revisions.page_changes(service.state.database, "all", number, "", 10)
        [item] = page.items
        assert f'"type":"{before}"' in str(item.before)
        assert f'"type":"{after}"' in str(item.after)


async def test_an_entity_that_another_set_took_was_removed(service: Service) -> None:
    await service.push("all", component("a"), component("b"))
    await service.push("other", component("a"), onConflict="take")
    assert await found(service, 1) == {"a": "added", "b": "added"}


async def test_pages_hold_each_entity_once(service: Service) -> None:
    await service.push("all", *(component(f"c{n}") for n in range(7)))
    seen, after = [], ""
    while True:
        page = await revisions.page_changes(service.state.database, "all", 1, after, 3)
        seen += [each.ref for each in page.items]
        after = seen[-1]
        if not page.more:
            break
    assert seen == [f"component:default/c{n}" for n in range(7)]


async def test_a_revision_that_is_not_kept_is_not_found(
    subtests: pytest.Subtests, service: Service
) -> None:
    await service.push("all", component("a"))
    for name, number in (("none", 1), ("all", 2), ("all", 0)):
        with subtests.test(name=name, number=number), pytest.raises(NotFoundError):
            await revisions.page_changes(service.state.database, name, number, "", 10)
