"""get-entity-facts: the raw facts of one data source about one entity."""

from collections.abc import Collection, Mapping, Set
from functools import lru_cache
from typing import Any, Final

import msgspec

from factbook.catalog import filters
from factbook.catalog.store import stored_entities
from factbook.clock import iso
from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource
from factbook.facts.schema import (
    ANY_FACT,
    NEVER_COLLECTED,
    NO_ANNOTATION,
    NOT_APPLICABLE,
    reason_word,
)
from factbook.facts.store import StoredFacts
from factbook.integrations import catalog
from factbook.tools import sources
from factbook.tools.tool import (
    Context,
    EntityArguments,
    Schema,
    Tool,
    build_unknown_entity_error,
    describe_record,
    describe_text_member,
    encode_result,
    find_existing_entity,
)

_LEFT_OUT = f"{NO_ANNOTATION}: the entityFilter of the data source leaves the entity out"

_NONE: Final[Mapping[str, Any]] = {}


class OneArguments(EntityArguments, forbid_unknown_fields=True, kw_only=True):
    """One entity and a data source."""

    data_source_id: sources.SourceId = msgspec.field(name="dataSourceId")


async def run_entity_facts(arguments: OneArguments, context: Context) -> str:
    """Every raw fact of the source about the entity."""
    source = sources.find_source(arguments.data_source_id, context)
    ref = arguments.ref()
    if catalog.is_catalog_source(source.id):
        owners = catalog.needs_owner_bit(source.id)
        found = await find_existing_entity(context.database, ref, owners=owners)
        facts = catalog.encode_catalog_facts(source.id, found.compliance)
        return _render_entity_facts(source, found.ref, facts, found.updated_at, {})
    if source is sources.ESSENTIAL_SOURCE:
        return await _answer_essential_facts(ref, context)
    known = await store.find_latest_by_ref(context.database, source.id, ref)
    if known is None:
        raise await build_unknown_entity_error(context.database, ref)
    reasons = await _list_missing_reasons(source, ref, known, context)
    facts = known.facts or "{}"
    stale = build_stale_members(decode_members(facts), known.stale) if known.stale else _NONE
    return _render_entity_facts(source, ref, facts, known.brought_at, reasons, stale)


async def _answer_essential_facts(ref: str, context: Context) -> str:
    found = await sources.find_essential_facts(context.database, ref)
    if found is None:
        raise await build_unknown_entity_error(context.database, ref)
    facts, time = found
    return _render_entity_facts(sources.ESSENTIAL_SOURCE, ref, encode_result(facts), time, {})


async def _list_missing_reasons(
    source: DataSource, ref: str, known: StoredFacts, context: Context
) -> Mapping[str, str]:
    """The reasons for missing values of the source."""
    if known.facts is None:
        entity = await _read_entity_document(ref, context)
        is_left_out = not filters.matches_filter(source.selection, entity)
        return {ANY_FACT: _explain_left_out(source, entity) if is_left_out else NEVER_COLLECTED}
    names = [fact.name for fact in source.schema]
    shown = store.explain_missing(names, decode_members(known.facts), known.reasons, None)
    if not sources.REASONS_ABOUT_ANNOTATIONS.intersection(map(reason_word, shown.values())):
        return shown
    entity = await _read_entity_document(ref, context)
    return {at: sources.explain_reason(why, source, entity) for at, why in shown.items()}


async def _read_entity_document(ref: str, context: Context) -> dict[str, Any]:
    found = await stored_entities.read_entity(context.database, ref)
    return msgspec.json.decode(found.render()) if found else {}


def _explain_left_out(source: DataSource, entity: Mapping[str, Any]) -> str:
    """The reason of an entity that the filter leaves out, naming an annotation that it lacks."""
    if not filters.matches_filter(source.ownership, dict(entity)):
        return f"{NOT_APPLICABLE}: the data source is only about entities of {source.owner}"
    about = sources.describe_annotations(source, entity)
    return f"{NO_ANNOTATION}: {about}" if about and about.startswith("no ") else _LEFT_OUT


def _render_entity_facts(
    source: DataSource,
    ref: str,
    facts: str,
    time: int | None,
    reasons: Mapping[str, str],
    stale: Mapping[str, Any] = _NONE,
) -> str:
    entry = f'"entityRef":{encode_result(ref)},{render_facts_end(facts, time, reasons, stale)}'
    return f"{render_source_head(source)},{entry}{render_draft_mark(source)}}}"


def render_draft_mark(source: DataSource) -> str:
    """The result member that marks facts of a draft."""
    return ',"draft":true' if source.draft else ""


def render_facts_end(
    facts: str,
    time: int | None,
    reasons: Mapping[str, str],
    stale: Mapping[str, Any] = _NONE,
) -> str:
    """The members after the reference as JSON text.

    Facts, their time, `build_stale_members` of them, and reasons for missing ones.
    """
    timestamp = "" if time is None else f',"timestamp":"{iso(time)}"'
    old = f",{encode_result(stale)[1:-1]}" if stale else ""
    why = f',"unknownReasons":{encode_result(reasons)}' if reasons else ""
    return f'"facts":{facts}{timestamp}{old}{why}'


def build_stale_members(facts: Collection[str], stale: Set[str]) -> dict[str, Any]:
    """The result members that mark stale values among the facts; none if all are current."""
    if not stale or stale.isdisjoint(facts):
        return {}
    some = freshness.find_stale(facts, stale)
    return {"stale": True, "staleFacts": some} if some else {"stale": True}


def render_source_head(source: DataSource) -> str:
    """The beginning of a result about the source."""
    return _render_head(source.id, source.title)


@lru_cache(maxsize=1024)
def _render_head(id_: str, title: str) -> str:
    return f'{{"dataSourceId":{encode_result(id_)},"dataSourceTitle":{encode_result(title)}'


decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

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
    "entityRef": describe_text_member("kind:namespace/name, in lower case."),
    "facts": {"type": "object", "description": "Fact name to value."},
    "timestamp": describe_text_member("Last write that brought a value, ISO 8601."),
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
    output_schema=describe_record({**COMMON, **ENTRY}, ("dataSourceId", "entityRef", "facts")),
    run=run_entity_facts,
)
