"""The doctor compares documents with what filters look into, while others push."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from factbook.operations.doctor import database as databases
from factbook.storage.database import ReadSnapshot
from tests.conftest import StartService
from tests.operations.doctor.conftest import Look, only
from tests.service import Service, component

PUSHES = 3


class Pushed:
    """A database in which all entities change after each of the first reads."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._inner: Any = service.state.database
        self.pushes = 0

    async def one(self, sql: str, parameters: Any = ()) -> Any:
        return await self.then_pushed(await self._inner.one(sql, parameters))

    async def all(self, sql: str, parameters: Any = ()) -> Any:
        return await self.then_pushed(await self._inner.all(sql, parameters))

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[ReadSnapshot]:
        async with self._inner.moment() as moment:
            yield _Pushed(self, moment)

    async def then_pushed(self, found: Any) -> Any:
        if self.pushes < PUSHES:
            self.pushes += 1
            items = [component(f"web-{i}", tags=[f"t{self.pushes}"]) for i in range(20)]
            await self._service.push("one", *items)
        return found


class _Pushed:
    def __init__(self, database: Pushed, inner: ReadSnapshot) -> None:
        self._database = database
        self._inner = inner

    async def columns(self, sql: str, parameters: Any = ()) -> list[list[Any]]:
        found = await self._inner.columns(sql, parameters)
        return list(await self._database.then_pushed(found))


async def test_a_push_in_between_is_not_taken_for_a_disagreement(start: StartService) -> None:
    service = await start()
    await service.push("one", *(component(f"web-{i}", tags=["t0"]) for i in range(20)))
    database: Any = Pushed(service)
    found = await databases.check_search_rows(database)
    assert database.pushes == PUSHES
    assert (found.state, found.what) == ("ok", "Filters agree with the documents of 20 entities.")


async def test_filters_that_disagree_with_the_documents_are_found(
    start: StartService, look: Look
) -> None:
    service = await start()
    await service.push("one", *(component(f"web-{number}") for number in range(300)))
    await service.state.database.write(
        lambda tx: tx.run("DELETE FROM search WHERE value = 'web-0'")
    )
    found = only(await look(), "search")
    assert (found.state, "component:default/web-0" in found.what) == ("problem", True)
