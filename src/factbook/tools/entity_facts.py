"""get-entity-facts: the raw facts of one data source about one entity."""

from collections.abc import Collection, Mapping, Set
from functools import lru_cache
from typing import Any, Final

import msgspec

from factbook.catalog.store import by_ref
from factbook.clock import iso
from factbook.facts import entity_filter, freshness, store, unknown
from factbook.facts.datasource import DataSource
from factbook.facts.reasons import EVERYTHING, NEVER_COLLECTED, NO_ANNOTATION, NOT_APPLICABLE, word
from factbook.facts.store import StoredFacts
from factbook.integrations import catalog
from factbook.tools import annotations, essential_facts, sources
from factbook.tools.result_schema import Schema, record, text
from factbook.tools.tool import (
    Context,
    EntityArguments,
    Tool,
    encode,
    existing,
    unknown_entity,
)

_LEFT_OUT = f"{NO_ANNOTATION}: the entityFilter of the data source leaves the entity out"

_NONE: Final[Mapping[str, Any]] = {}


class OneArguments(EntityArguments, forbid_unknown_fields=True, kw_only=True):
    """One entity and a data source."""

    data_source_id: sources.SourceId = msgspec.field(name="dataSourceId")


async def one(arguments: OneArguments, context: Context) -> str:
    """Every raw fact of the source about the entity."""
    source = sources.one(arguments.data_source_id, context)
    ref = arguments.ref()
    if catalog.answers(source.id):
        owners = catalog.looks_for_owners(source.id)
        found = await existing(context.database, ref, owners=owners)
        facts = catalog.facts(source.id, found.compliance)
        return _one(source, found.ref, facts, found.updated_at, {})
    if source is essential_facts.SOURCE:
        return await _essential(ref, context)
    known = await store.latest_by_ref(context.database, source.id, ref)
    if known is None:
        raise await unknown_entity(context.database, ref)
    reasons = await _reasons(source, ref, known, context)
    facts = known.facts or "{}"
    stale = stale_members(members(facts), known.stale) if known.stale else _NONE
    return _one(source, ref, facts, known.brought_at, reasons, stale)


async def _essential(ref: str, context: Context) -> str:
    found = await essential_facts.of_ref(context.database, ref)
    if found is None:
        raise await unknown_entity(context.database, ref)
    facts, time = found
    return _one(essential_facts.SOURCE, ref, encode(facts), time, {})


async def _reasons(
    source: DataSource, ref: str, known: StoredFacts, context: Context
) -> Mapping[str, str]:
    """The reasons for missing values of the source."""
    if known.facts is None:
        entity = await _entity(ref, context)
        is_left_out = not entity_filter.matches(source.selection, entity)
        return {EVERYTHING: _left_out(source, entity) if is_left_out else NEVER_COLLECTED}
    names = [fact.name for fact in source.schema]
    shown = unknown.shown(names, members(known.facts), known.reasons, None)
    if not annotations.EXPLAINED.intersection(map(word, shown.values())):
        return shown
    entity = await _entity(ref, context)
    return {at: annotations.explained(why, source, entity) for at, why in shown.items()}


async def _entity(ref: str, context: Context) -> dict[str, Any]:
    found = await by_ref.entity(context.database, ref)
    return msgspec.json.decode(found.render()) if found else {}


def _left_out(source: DataSource, entity: Mapping[str, Any]) -> str:
    """The reason of an entity that the filter leaves out, naming an annotation that it lacks."""
    if not entity_filter.matches(source.ownership, dict(entity)):
        return f"{NOT_APPLICABLE}: the data source is only about entities of {source.owner}"
    about = annotations.told(source, entity)
    return f"{NO_ANNOTATION}: {about}" if about and about.startswith("no ") else _LEFT_OUT


def _one(
    source: DataSource,
    ref: str,
    facts: str,
    time: int | None,
    reasons: Mapping[str, str],
    stale: Mapping[str, Any] = _NONE,
) -> str:
    entry = f'"entityRef":{encode(ref)},{end(facts, time, reasons, stale)}'
    return f"{head(source)},{entry}{draft(source)}}}"


def draft(source: DataSource) -> str:
    """The result member that marks facts of a draft."""
    return ',"draft":true' if source.draft else ""


def end(
    facts: str,
    time: int | None,
    reasons: Mapping[str, str],
    stale: Mapping[str, Any] = _NONE,
) -> str:
    """The members after the reference as JSON text.

    Facts, their time, `stale_members` of them, and reasons for missing ones.
    """
    timestamp = "" if time is None else f',"timestamp":"{iso(time)}"'
    old = f",{encode(stale)[1:-1]}" if stale else ""
    why = f',"unknownReasons":{encode(reasons)}' if reasons else ""
    return f'"facts":{facts}{timestamp}{old}{why}'


def stale_members(facts: Collection[str], stale: Set[str]) -> dict[str, Any]:
    """The result members that mark stale values among the facts; none if all are current."""
    if not stale or stale.isdisjoint(facts):
        return {}
    some = freshness.some(facts, stale)
    return {"stale": True, "staleFacts": some} if some else {"stale": True}


def head(source: DataSource) -> str:
    """The beginning of a result about the source."""
    return _head(source.id, source.title)


@lru_cache(maxsize=1024)
def _head(id_: str, title: str) -> str:
    return f'{{"dataSourceId":{encode(id_)},"dataSourceTitle":{encode(title)}'


members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

STALE: Final[Schema] = {
    "stale": {
        "type": "boolean",
        "description": "The data source could not renew values when it last tried, or is overdue.",
    },
    "staleFacts": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Which values are stale, if not all.",
    },
}
ENTRY: Final[Schema] = {
    "entityRef": text("kind:namespace/name, in lower case."),
    "facts": {"type": "object", "description": "Fact name to value."},
    "timestamp": text("Last write that brought a value, ISO 8601."),
    **STALE,
    "unknownReasons": {
        "type": "object",
        "description": "Why facts have no value, by the name of a fact or of the group that it is "
        "in; `*` stands for all others. A word, and maybe more after a colon.",
        "additionalProperties": {"type": "string"},
    },
}
COMMON: Final[Schema] = {
    "dataSourceId": {"type": "string"},
    "dataSourceTitle": {"type": "string"},
    "draft": {"type": "boolean", "description": "The source is a draft."},
}

TOOL = Tool(
    name="get-entity-facts",
    title="Facts about one entity",
    description=(
        "Returns every raw fact of one data source about one catalog entity. Needs a dataSourceId "
        "from get-data-source-discovery; for many entities use get-all-entities-facts, for ready "
        "figures the get-…-metrics tools. kind defaults to component, namespace to default. "
        "A fact without a value is not among the facts but has its reason in unknownReasons. "
        "Without any value there is no timestamp."
    ),
    arguments=OneArguments,
    output_schema=record({**COMMON, **ENTRY}, ("dataSourceId", "entityRef", "facts")),
    run=one,
)
