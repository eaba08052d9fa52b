"""Facts of one source about entities that are chosen by owner or condition, or their numbers.

These answers are made for agents: long values are left out unless they are named, a time that all
rows share is said once, and a page ends before it is too long.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, get_args

import msgspec

from factbook.catalog.store import summaries
from factbook.catalog.store.conditions import Condition
from factbook.catalog.store.summaries import Group
from factbook.catalog.store.trigrams import Among
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.state import PASS, UNKNOWN
from factbook.clock import iso
from factbook.errors import ToolError
from factbook.facts import unknown
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest
from factbook.storage.database import LONGEST_SEARCH, in_time
from factbook.tools import essential_facts
from factbook.tools.entities import conditions, matching
from factbook.tools.entities.conditions import FactConditions
from factbook.tools.entities.matching import Search
from factbook.tools.entity_facts import stale_members
from factbook.tools.pages import LONGEST_VALUE, EntryPage, ref_cursor, shortened
from factbook.tools.tool import Context, encode

CATALOG_GROUPS: Final[tuple[Group, ...]] = get_args(Group)
_MOST_GROUPS: Final = 100
_AT_ONCE: Final = 2_000
_NOTHING: Final = Latest({}, {}, "", 0)


class FactChoice(NamedTuple):
    """A question to a source: which entities, which facts, and in which form.

    `kept` names facts, None for all. `counted` and `group_by` ask for numbers alone; `of_unknown`
    for the entities about which nothing is known.
    """

    source: DataSource
    part: Condition
    where: object | None
    kept: frozenset[str] | None
    limit: int
    after: str
    counted: bool
    group_by: str | None
    of_unknown: bool


class _ChosenRow(NamedTuple):
    ref: str
    id: int
    latest: Latest


async def answer(asked: FactChoice, context: Context) -> dict[str, Any]:
    """The members of the answer after the name of the source."""
    work = _Choosing(asked, context, await _conditions(asked, context))
    return await work.done()


async def _conditions(asked: FactChoice, context: Context) -> FactConditions:
    is_essential = asked.source is essential_facts.SOURCE
    own = [] if is_essential else [asked.source.id]
    if asked.where is None:
        found = conditions.nothing(own, documents=is_essential)
    else:
        found = await conditions.read(asked.where, context, asked.source.id)
        found = found._replace(
            sources=sorted({*found.sources, *own}), reads_entity=found.reads_entity or is_essential
        )
    return found if is_essential else conditions.known_of(asked.source, found)


class _Choosing:
    """The entities of one answer, gathered until there are enough."""

    def __init__(self, asked: FactChoice, context: Context, wanted: FactConditions) -> None:
        self._asked = asked
        self._context = context
        self._search = Search(asked.part, wanted, context.now)
        self._is_counted = asked.counted or asked.group_by is not None
        self._page = EntryPage(asked.limit)
        self._entries: list[dict[str, Any]] = []
        self._left_out = Counter[str]()
        self._last, self._more = "", False
        self._ids: list[int] = []
        self._values = Counter[str]()
        self._unknown = self._examined = self._stale = 0

    async def done(self) -> dict[str, Any]:
        database, search = self._context.database, self._search
        whole = self._is_counted or await matching.has_few(database, search.part)
        async with in_time(LONGEST_SEARCH):
            async for rows, entities, states in matching.evaluated(
                database, search, self._asked.after
            ):
                if self._asked.source is essential_facts.SOURCE:
                    await essential_facts.add(database, entities, [row.id for row in rows])
                for row, entity, state in zip(rows, entities, states, strict=True):
                    self._take(row.ref, row.id, entity, state)
                self._examined += len(rows)
                if self._more and not whole:
                    return self._shown({"examined": self._examined})
        told: dict[str, Any] = {}
        if self._is_counted:
            told = (await search.asked.age(database, self._context.now)).render()
        told |= {} if self._asked.after else {"totalCount": len(self._ids)}
        if self._asked.group_by is not None:
            told |= _largest(await self._groups(self._asked.group_by))
        return self._shown(told)

    def _take(self, ref: str, id_: int, entity: CheckedEntity, state: int) -> None:
        latest = entity.facts.get(self._asked.source.id, _NOTHING)
        self._unknown += state == UNKNOWN
        if state != (UNKNOWN if self._asked.of_unknown else PASS):
            return
        self._ids.append(id_)
        if self._is_counted:
            self._count(latest)
        elif not self._more:
            self._add(_ChosenRow(ref, id_, latest))

    def _count(self, latest: Latest) -> None:
        name = self._asked.group_by
        by_fact = name is not None and name not in CATALOG_GROUPS
        self._stale += name in latest.kept if by_fact else bool(latest.kept)
        if name is not None:
            value = latest.facts.get(name)
            values = value or [None] if isinstance(value, list) else [value]
            self._values.update(map(encode, values))

    def _add(self, row: _ChosenRow) -> None:
        names = [fact.name for fact in self._asked.source.schema]
        kept, facts = self._asked.kept, dict[str, Any]()
        for name, value in row.latest.facts.items():
            if kept is None and len(encode(value)) > LONGEST_VALUE:
                self._left_out[name] += 1
            elif kept is None or name in kept:
                facts[name] = value
        why = unknown.shown(names, row.latest.facts, row.latest.reasons, kept)
        if self._asked.source is essential_facts.SOURCE:
            why = {}
        at = row.latest.brought_at
        entry = {
            "entityRef": row.ref,
            "facts": facts,
            "timestamp": None if at is None else iso(at),
            **stale_members(facts, row.latest.kept.keys()),
            "unknownReasons": why,
        }
        entry = {name: value for name, value in entry.items() if value or name == "facts"}
        if self._page.add(entry):
            self._entries.append(entry)
            self._last = row.ref
        else:
            self._more = True

    def _shown(self, told: Mapping[str, Any]) -> dict[str, Any]:
        entries = self._entries
        times = {entry.get("timestamp") for entry in entries}
        shared: dict[str, Any] = {"staleCount": self._stale} if self._stale else {}
        if len(entries) > 1 and len(times) == 1 and None not in times:
            shared["timestamp"] = times.pop()
            for entry in entries:
                del entry["timestamp"]
        if self._left_out:
            shared["leftOut"] = dict(self._left_out)
        if self._more:
            shared["nextCursor"] = ref_cursor(self._last)
        return {"entities": entries, **told, "unknown": self._unknown, **shared}

    async def _groups(self, by: str) -> list[tuple[Any, int]]:
        if by in {fact.name for fact in self._asked.source.schema}:
            return [(msgspec.json.decode(text), n) for text, n in self._values.items()]
        found = Counter[str | None]()
        group = next(one for one in CATALOG_GROUPS if one == by)
        for start in range(0, len(self._ids), _AT_ONCE):
            some = self._ids[start : start + _AT_ONCE]
            database = self._context.database
            found.update(await summaries.groups(database, Among(some), group, len(some)))
        return list(found.items())


def _largest(groups: Iterable[tuple[Any, int]]) -> dict[str, Any]:
    """The largest groups, and how many others there are."""
    ordered = sorted(groups, key=lambda group: (-group[1], str(group[0])))
    rows = [{"value": shortened(value)[0], "count": n} for value, n in ordered[:_MOST_GROUPS]]
    others = len(ordered) - len(rows)
    return {"groups": rows, **({"otherGroups": others} if others else {})}


def check_group(source: DataSource, name: str) -> None:
    """Raise ToolError if entities cannot be counted by this."""
    facts = [fact.name for fact in source.schema if fact.type != "object"]
    if name not in facts and name not in CATALOG_GROUPS:
        known = ", ".join([*CATALOG_GROUPS, *facts[:100]])
        raise ToolError(f"groupBy cannot be {name[:100]}. Choose among: {known}.")
