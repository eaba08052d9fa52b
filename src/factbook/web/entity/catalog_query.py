"""Search parameters of the catalog, their filter, and addresses with others."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, NamedTuple, Self, cast, get_args
from urllib.parse import quote, urlencode

from factbook.auth.permissions import CHECK_READ
from factbook.catalog import people_trust
from factbook.catalog.store import browse, entity_query, related_entities
from factbook.catalog.store.browse import EntityRow, Filter
from factbook.catalog.store.conditions import Condition
from factbook.catalog.store.entity_query import count_kinds
from factbook.catalog.store.related_entities import (
    ANY_FIELD,
    BrokenEntity,
    Dangling,
    ReferenceField,
)
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, NO_LEVEL_WORD
from factbook.checks.scorecard_figures import ScorecardInEffect
from factbook.errors import InputError
from factbook.storage import Database
from factbook.web.entity import team_scorecards
from factbook.web.site import formats
from factbook.web.site.page_context import PageContext

PATH: Final = "/catalog"
MOST_COLUMNS: Final = 4
EXACT: Final = "exact"
MINE: Final = "mine"
NONE: Final = "none"
MISSING: Final = "missing"
OWNERSHIPS: Final = (
    ("", "Any"),
    (MINE, "Mine, including subteams"),
    (NONE, "No owner"),
    (MISSING, "Owner doesn't exist"),
)
DANGLING: Final = (
    ("", "With or without"),
    (ANY_FIELD, "In any field"),
    *((name, f"In {name}") for name in get_args(ReferenceField) if name != ANY_FIELD),
)
_FIRST: Final = "component"
_LONGEST: Final = 300  # characters of what is looked for; no value that the index has is longer
_WITHOUT_EFFECT: Final = frozenset({"order", "count", "column"})


@dataclass(frozen=True)
class CatalogQuery:
    """Search parameters of the address, as typed; `begins` if the address has none."""

    q: str = ""
    kind: str = ""
    namespace: str = ""
    owner: str = ""
    ownership: str = ""
    dangling: str = ""
    tag: str = ""
    type: str = ""
    lifecycle: str = ""
    system: str = ""
    level: str = ""
    set: str = ""
    order: str = ""
    count: str = ""
    column: tuple[str, ...] = ()
    begins: bool = False

    @classmethod
    async def of(cls, visit: PageContext) -> Self:
        """Parameters in the query of a request; raises InputError for unknown words.

        An address without any is the beginning: components, if there are any.
        """
        texts: dict[str, Any] = {
            one.name: _cut(visit.query(one.name)) for one in fields(cls) if one.type is str
        }
        columns = filter(None, dict.fromkeys(map(_cut, visit.request.all("column"))))
        asked = cls(**texts, column=tuple(columns)[:MOST_COLUMNS])
        for name, words in _WORDS.items():
            if getattr(asked, name) not in ("", *words):
                raise InputError(f"The {name} is one of {', '.join(words)}, or left out.")
        if visit.request.query or _FIRST not in await count_kinds(visit.state.database):
            return asked
        return replace(asked, kind=_FIRST, begins=True)

    @property
    def narrowed(self) -> bool:
        """True if it asks for less than every entity."""
        given = self._given()
        return bool(given.keys() - _WITHOUT_EFFECT)

    @property
    def broken(self) -> ReferenceField | None:
        """The field in which references have to lead nowhere; None where it doesn't matter."""
        if self.dangling:
            return cast("ReferenceField", self.dangling)
        return "owner" if self.ownership == MISSING else None

    @property
    def further(self) -> bool:
        """True if it has a filter beyond the most usual ones."""
        return any((self.namespace, self.system, self.level, self.set, self.dangling))

    def address(self, path: str = PATH, **others: str) -> str:
        """Address with other values for some parameters; empty ones are left out.

        That of all entities says so, since an address without parameters is the beginning.
        """
        given = {name: value for name, value in {**self._given(), **others}.items() if value}
        query = urlencode(given or {"kind": ""}, doseq=True, quote_via=quote)
        return f"{path}?{query}"

    def _given(self) -> dict[str, str | tuple[str, ...]]:
        given = asdict(self)
        del given["begins"]
        return {name: value for name, value in given.items() if value}


def _cut(text: str) -> str:
    # No entity has the character NUL, and PostgreSQL takes no text that does.
    return text.strip().replace("\0", "")[:_LONGEST]


_WORDS: Final = {
    "order": browse.ORDERS,
    "count": (EXACT,),
    "ownership": [word for word, _ in OWNERSHIPS if word],
    "dangling": get_args(ReferenceField),
}


# Names that a part of one may mean, and owners that are not in the catalog.
_MATCHES: Final = 50
_MISSING: Final = 1_000
_GROUPS: Final = 50  # of a person


class CatalogFilter(NamedTuple):
    """The filter, and what is to be said of it."""

    filter: Filter
    hints: list[str]


class _Matches(NamedTuple):
    values: Sequence[str] | None
    hint: str = ""


_ANY: Final = _Matches(None)


async def of(
    visit: PageContext, asked: CatalogQuery, cards: Sequence[ScorecardInEffect]
) -> CatalogFilter:
    """The filter; raises InputError for a level that is none."""
    database = visit.state.database
    owners = await _owners(database, asked.owner)
    systems = await _systems(database, asked.system)
    tags = await _tags(database, asked.tag.lower())
    others, said = await _of_ownership(visit, asked.ownership)
    for type_, found in (("ownedBy", owners), ("partOf", systems)):
        if found.values is not None:
            others.append(await entity_query.build_related_condition(database, type_, found.values))
    if asked.dangling:
        others.append(Dangling(cast("ReferenceField", asked.dangling)))
    if asked.level:
        others.append(await team_scorecards.build_level_condition(database, cards, asked.level))
    hints = [owners.hint, systems.hint, tags.hint, said]
    wanted = Filter(
        kind=asked.kind.lower(),
        namespace=asked.namespace.lower(),
        tags=tags.values,
        set=asked.set,
        text=asked.q.lower(),
        type=asked.type.lower(),
        lifecycle=asked.lifecycle.lower(),
        others=tuple(others),
    )
    return CatalogFilter(wanted, [hint for hint in hints if hint])


async def broken(
    database: Database, asked: CatalogQuery, rows: Sequence[EntityRow]
) -> Mapping[str, BrokenEntity] | None:
    """The references of these entities that lead nowhere; None if they aren't asked for."""
    if asked.broken is None:
        return None
    return await related_entities.find_broken_references(
        database, [row.ref for row in rows], asked.broken
    )


async def scorecards(visit: PageContext) -> list[ScorecardInEffect]:
    """The scorecards whose levels the person may see."""
    return await team_scorecards.in_effect(visit.state.database) if visit.may(CHECK_READ) else []


def level_choices(cards: Sequence[ScorecardInEffect]) -> list[tuple[str, str]]:
    """Options for the levels of scorecards, the highest first."""
    found = [("", "Any")]
    for card, _ in cards:
        levels = [(one.id, one.title) for one in reversed(card.levels)]
        for id_, title in (*levels, (NO_LEVEL_WORD, NO_LEVEL_TITLE)):
            found.append((f"{card.id}/{id_}", f"{card.title}: {title}"))
    return found


async def _owners(database: Database, text: str) -> _Matches:
    """The owner that the text names, or else those that have it in their references."""
    if not text:
        return _ANY
    exact = formats.reference(text, "group", "default")
    if exact and await browse.is_relation_target(database, "ownedBy", exact):
        return _Matches([exact])
    found = await browse.find_owner_choices(database, text.lower(), _MATCHES + 1)
    return _some(found, "owners")


async def _systems(database: Database, text: str) -> _Matches:
    if not text:
        return _ANY
    exact = formats.reference(text, "system", "default")
    if exact and await browse.is_relation_target(database, "partOf", exact):
        return _Matches([exact])
    found = await browse.find_system_choices(database, text.lower(), _MATCHES + 1)
    return _some(found, "systems")


async def _tags(database: Database, text: str) -> _Matches:
    if not text:
        return _ANY
    found = await browse.list_value_choices(database, "metadata.tags", text, _MATCHES + 1)
    return _Matches([text]) if found[:1] == [text] else _some(found, "tags")


def _some(found: Sequence[str], noun: str) -> _Matches:
    if not found:
        return _Matches([], f"There are no such {noun}.")
    if len(found) > _MATCHES:
        return _Matches(found[:_MATCHES], f"The first {_MATCHES} of these {noun}. Type more.")
    return _Matches(found)


async def _of_ownership(visit: PageContext, ownership: str) -> tuple[list[Condition], str]:
    database = visit.state.database
    if ownership == NONE:
        return [browse.LacksOwner()], ""
    if ownership == MISSING:
        missing = await browse.find_missing_owners(database, _MISSING + 1)
        hint = f"Those of the first {_MISSING:,} owners." if len(missing) > _MISSING else ""
        return [
            await entity_query.build_related_condition(database, "ownedBy", missing[:_MISSING])
        ], hint
    if ownership == MINE:
        person = visit.person.ref
        groups = sorted(await people_trust.read_stated_groups(database, person))[:_GROUPS]
        below = await asyncio.gather(
            *(related_entities.list_groups_below(database, one) for one in groups)
        )
        refs = dict.fromkeys([person, *(ref for some in below for ref in some)])
        hint = "" if groups else f"The catalog has {formats.short_ref(person)} in no group."
        return [await entity_query.build_related_condition(database, "ownedBy", list(refs))], hint
    return [], ""
