"""Pushes to a data source: example commands, and the last pushes."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ
from factbook.facts import source_overview
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.web.entity import fact_values
from factbook.web.site.formatting import quoted
from factbook.web.site.page_context import PageContext

_PUSHES: Final = 10
_EXAMPLES: Final = 3  # facts of an example, and of a push that are shown with their values
_VALUES: Final[Mapping[str, Any]] = {
    "integer": 1,
    "float": 1.5,
    "boolean": True,
    "datetime": "2026-11-21T12:00:00Z",
    "set": ["one", "two"],
    "object": {"key": "value"},
}
_ANY_ENTITY: Final = "component:default/NAME"


class EntityPush(NamedTuple):
    """A push about one entity: some formatted facts, and the number of further ones."""

    ref: str
    written_at: int
    facts: list[tuple[str, str]]
    more: int


class Pushes(NamedTuple):
    """Section of the page on pushes: the last ones, newest first, and example commands."""

    last: list[EntityPush]
    lines: dict[str, str]


async def of_source(visit: PageContext, source: DataSource) -> Pushes:
    """Last pushes, for people who may see the entities, and examples by the schema."""
    database = visit.state.database
    rows = (
        await source_overview.pushed(database, source.id, _PUSHES)
        if visit.may(CATALOG_READ)
        else []
    )
    about = await source_overview.matching(database, source, 1)
    return Pushes([_push(source, *row) for row in rows], _lines(visit, source, *about))


def _push(source: DataSource, ref: str, written_at: int, text: str) -> EntityPush:
    values: dict[str, Any] = msgspec.json.decode(text)
    known = [fact for fact in source.schema if fact.name in values]
    shown = [(fact.name, fact_values.in_words(fact, values[fact.name])) for fact in known]
    return EntityPush(ref, written_at, shown[:_EXAMPLES], len(values) - len(shown[:_EXAMPLES]))


def _lines(visit: PageContext, source: DataSource, ref: str = _ANY_ENTITY) -> dict[str, str]:
    """Commands that push facts, by program."""
    server = visit.server
    facts = {fact.name: _example(fact) for fact in source.schema[:_EXAMPLES]}
    pairs = " ".join(quoted(f"{name}={_typed(value)}") for name, value in facts.items())
    item = {"entity": ref, "facts": facts}
    body = msgspec.json.encode({"items": [item]}).decode()
    url = f"{server}/api/tech-insights/v1/facts/{source.id}"
    return {
        "factbook": (
            f"export FACTBOOK_SERVER={server}\n"
            "export FACTBOOK_TOKEN=…   # Administration → Account → API access\n"
            f"factbook push-facts {quoted(source.id)} --entity {quoted(ref)} {pairs}"
        ),
        "curl": (
            f"curl {quoted(url)} \\\n"
            '  -H "Authorization: Bearer $FACTBOOK_TOKEN" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            f"  -d {quoted(body)}"
        ),
    }


def _example(fact: Fact) -> Any:
    return _VALUES.get(fact.type, "text")


def _typed(value: Any) -> str:
    """A value in the form of the command line: texts as they are, all else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
