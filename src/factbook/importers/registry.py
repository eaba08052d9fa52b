"""Registry of the current importers."""

from collections.abc import Mapping, Sequence

from factbook.errors import NotFoundError
from factbook.importers.importer import Importer
from factbook.storage import Database


class ImporterRegistry:
    """Registry of every importer, by its id."""

    def __init__(self, database: Database, configured: Sequence[Importer]) -> None:
        self._database = database
        self.configured: Mapping[str, Importer] = {one.id: one for one in configured}

    async def current(self) -> Mapping[str, Importer]:
        """The current importers: the same mapping until one of them changes."""
        return self.configured

    async def one(self, id_: str) -> Importer:
        """The importer with this id; raises NotFoundError."""
        found = (await self.current()).get(id_)
        if found is None:
            raise NotFoundError(f'There is no importer "{id_}".')
        return found
