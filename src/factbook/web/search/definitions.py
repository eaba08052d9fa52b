"""Titles of all scorecards and checks, kept until one of them changes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from factbook.checks.versions.check_store import check_store
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.storage import Database


class DefinitionTitle(NamedTuple):
    """A scorecard or a check, by its title."""

    id: str
    title: str


class Definitions(NamedTuple):
    """All of them, at a revision."""

    revision: int
    scorecards: Sequence[DefinitionTitle]
    checks: Sequence[DefinitionTitle]


class _TitledDefinition(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def current(self) -> dict[str, object]: ...


class _RememberedTitles:
    definitions: Definitions | None = None


async def current(database: Database) -> Definitions:
    """The titles as they are now."""
    remembered = database.remembered.of(_RememberedTitles)
    revision = await check_store.revision(database)
    known = remembered.definitions
    if known is None or known.revision != revision:
        known = remembered.definitions = Definitions(
            revision,
            _titles(await scorecard_store.everything(database)),
            _titles(await check_store.everything(database)),
        )
    return known


def _titles(found: Iterable[_TitledDefinition]) -> list[DefinitionTitle]:
    return [DefinitionTitle(one.id, str(one.current.get("title", one.id))) for one in found]
