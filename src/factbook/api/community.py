"""API for the pages of Backstage's community plugin, served by this service instead.

Results are true or false. Unknown results are null, with reasons in the description. Entities that
are exempt, or that the check doesn't apply to, have no result.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.api.endpoint import Route
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.catalog import ref as refs
from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import result_queries
from factbook.checks.results.entity_evaluation import CheckCache
from factbook.checks.results.result_queries import CheckResult
from factbook.checks.rules.check_definition import Check, parse_stored_check
from factbook.checks.rules.language import CHECKS, ENTITY, walk_leaves
from factbook.checks.rules.rule_evaluation import Explanation
from factbook.clock import iso, milliseconds
from factbook.errors import FactbookError, InputError
from factbook.facts import history, store
from factbook.facts.schema import Fact
from factbook.http.context import HandlerContext, SourceContext
from factbook.http.requests import JsonReply, Request, decode, reply

_LARGEST: Final = 256 * 1024
# The plugin requests this many entities at once.
_MOST_ENTITIES: Final = 750
# A result takes about a kilobyte, and one answer holds all of them.
_MOST_RESULTS: Final = 50_000
_MOST_IDS: Final = 100
_MOST_ROWS: Final = 1_000
# The check type that the plugin renders as true or false.
_TYPE: Final = "json-rules-engine"
# `ids`, in the forms that the plugin's library uses for lists.
_IDS: Final = re.compile(r"ids(?:\[[0-9]{0,3}\])?")
_RESULTS: Final = {state.PASS: True, state.FAIL: False, state.UNKNOWN: None, state.NONE: None}
Shown = dict[str, Any]
FactSchemas = Callable[[str], Mapping[str, Fact]]
_READ = (CHECK_READ,)
# This plugin's results include the facts they are based on.
_READ_FACTS = (CATALOG_READ, SOURCE_READ)
_RUN_PATH = "/checks/run"


class CommunityRun(Struct):
    """The checks to run; every one if none is named."""

    checks: Annotated[list[str], Meta(max_length=500)] | UnsetType | None = UNSET


class CommunityEntity(Struct):
    """An entity by its parts."""

    kind: str
    name: str
    namespace: str = "default"


class CommunityBulkRun(CommunityRun):
    """The entities to run them for."""

    entities: Annotated[list[CommunityEntity], Meta(max_length=_MOST_ENTITIES)] = []


async def get_community_checks(request: Request, state: HandlerContext) -> JsonReply[list[Shown]]:
    """Every check in effect."""
    stored = await check_store.everything(state.database)
    shown = []
    for one in stored:
        if one.slot is not None:
            try:
                shown.append(_render_community_check(parse_stored_check(one.current)))
            except FactbookError:
                continue  # only another release can read it
    return reply(shown)


async def run_community_checks(request: Request, state: SourceContext) -> JsonReply[list[Shown]]:
    """The results of one entity."""
    asked = decode(await request.json_body(_LARGEST, "a run") or b"{}", CommunityRun)
    parts = (request.parameter(name) for name in ("kind", "namespace", "name"))
    ref = str(refs.parse_ref("{}:{}/{}".format(*parts)))
    found = await _list_community_results(state, ref, asked, await _build_fact_schemas(state))
    if found is None:
        raise await stored_entities.make_unknown_error(state.database, ref)
    return reply(found)


async def run_community_checks_in_bulk(
    request: Request, state: SourceContext
) -> JsonReply[list[Shown]]:
    """The results of many entities; those that do not exist have none."""
    asked = decode(await request.json_body(_LARGEST, "a run"), CommunityBulkRun)
    known = await state.database.remembered.of(CheckCache).loaded(state.database)
    checks = len({*asked.checks} & known.slots.keys()) if asked.checks else len(known.slots)
    if len(asked.entities) * checks > _MOST_RESULTS:
        raise InputError(
            f"{len(asked.entities)} entities with {checks} checks are more than "
            f"{_MOST_RESULTS:,} results; ask for fewer at once."
        )
    answers: list[Shown] = []
    schemas = await _build_fact_schemas(state)
    for one in asked.entities:
        ref = str(refs.parse_ref(f"{one.kind}:{one.namespace}/{one.name}"))
        found = await _list_community_results(state, ref, asked, schemas)
        answers.append({"entity": ref, "results": found or []})
    return reply(answers)


async def get_community_facts(request: Request, state: SourceContext) -> JsonReply[Shown]:
    """The latest facts of an entity by data source."""
    ref, wanted = _read_entity_parameter(request), _read_ids_parameter(request)
    found = await store.list_latest_by_ref(state.database, ref)
    return reply(
        {
            source_id: {
                "timestamp": iso(latest.brought_at or latest.written_at),
                "version": latest.version,
                "facts": latest.facts,
                **({"stale": True} if latest.kept else {}),
            }
            for source_id, latest in found.items()
            if not wanted or source_id in wanted
        }
    )


async def get_community_fact_range(request: Request, state: SourceContext) -> JsonReply[Shown]:
    """The history of the facts of an entity by data source, newest first."""
    ref, wanted = _read_entity_parameter(request), _read_ids_parameter(request)
    start, end = (
        _read_time_parameter(request, "startDatetime"),
        _read_time_parameter(request, "endDatetime"),
    )
    entity_id = await stored_entities.read_entity_id(state.database, ref)
    if entity_id is None:
        raise await stored_entities.make_unknown_error(state.database, ref)
    rows = await history.page_history(
        state.database, wanted or None, entity_id, start, end, None, _MOST_ROWS
    )
    found: dict[str, list[Shown]] = {}
    for row in rows:
        shown = {"timestamp": iso(row.written_at), "version": row.version, "facts": row.facts}
        found.setdefault(row.source_id, []).append(shown)
    return reply(found)


async def get_community_fact_schemas(
    request: Request, state: SourceContext
) -> JsonReply[list[Shown]]:
    """The facts of each data source, by name."""
    known, wanted = await state.registry.latest(), _read_ids_parameter(request)
    return reply(
        [
            {
                fact.name: {"type": fact.type, "description": fact.description or ""}
                for fact in source.schema
            }
            for id_, source in known.sources.items()
            if not wanted or id_ in wanted
        ]
    )


async def _build_fact_schemas(state: SourceContext) -> FactSchemas:
    """Map each source to its facts by name, built when a result first needs them."""
    sources = (await state.registry.latest()).sources

    @cache
    def of(source_id: str) -> Mapping[str, Fact]:
        source = sources.get(source_id)
        return {} if source is None else {fact.name: fact for fact in source.schema}

    return of


async def _list_community_results(
    state: SourceContext, ref: str, asked: CommunityRun, schemas: FactSchemas
) -> list[Shown] | None:
    only = asked.checks or []
    found = await result_queries.read_entity_results(state.database, ref, state.clock(), only=only)
    if found is None:
        return None
    return [
        _render_community_result(one, schemas) for one in found.results if one.state in _RESULTS
    ]


def _render_community_result(found: CheckResult, schemas: FactSchemas) -> Shown:
    told, value = found.explanation, _RESULTS[found.state]
    check = _render_community_check(found.check)
    metadata: Shown = {"state": state.name_state(found.state)}
    if told is not None:
        if value is None and told.reasons:
            check["description"] = f"Unknown: {', '.join(told.reasons)}. {check['description']}"
        elif told.message:
            check["description"] = told.message
        if told.fix_link:
            check["links"] = [{"title": "Fix it", "url": told.fix_link}]
    facts = {} if told is None else _render_result_facts(told, schemas)
    return {"facts": facts, "check": {**check, "metadata": metadata}, "result": value}


def _render_result_facts(told: Explanation, schemas: FactSchemas) -> Shown:
    found: Shown = {}
    for seen in told.because:
        name = seen.leaf.fact.fact
        fact = schemas(seen.leaf.fact.source).get(name)
        found[name] = {
            "id": name,
            "type": "string" if fact is None else fact.type,
            "description": "" if fact is None else fact.description or "",
            "value": seen.value,
        }
    return found


def _render_community_check(check: Check) -> Shown:
    sources = {leaf.fact.source for _, leaf in walk_leaves(check.rule)}
    return {
        "id": check.id,
        "type": _TYPE,
        "name": check.title,
        "description": check.description or "",
        "factIds": sorted(sources - {ENTITY, CHECKS}),
        "metadata": {"owner": check.owner, "severity": check.severity},
    }


def _read_entity_parameter(request: Request) -> str:
    given = request.all("entity")
    if len(given) != 1:
        raise InputError("entity is required, once: kind:namespace/name.")
    return str(refs.parse_ref(given[0]))


def _read_ids_parameter(request: Request) -> list[str]:
    found = [value for name, value in request.query if _IDS.fullmatch(name)]
    if len(found) > _MOST_IDS:
        raise InputError(f"ids can name {_MOST_IDS} data sources at most.")
    return found


def _read_time_parameter(request: Request, name: str) -> int | None:
    given = request.all(name)
    if not given:
        return None
    moment = milliseconds(given[0].replace(" ", "+"))
    if moment is None:
        raise InputError(f"{name} has to be an ISO 8601 date and time with a UTC offset.")
    return moment


# Below /api/tech-insights. Not in the OpenAPI document, as other routes there cover the same.
COMMUNITY_ROUTES: Sequence[Route] = tuple(
    Route(method, path, handler, permissions, None, described=False, reading=permissions)
    for method, path, handler, permissions in (
        ("GET", "/checks", get_community_checks, _READ),
        ("POST", _RUN_PATH, run_community_checks_in_bulk, _READ_FACTS),
        ("POST", f"{_RUN_PATH}/{{namespace}}/{{kind}}/{{name}}", run_community_checks, _READ_FACTS),
        ("GET", "/facts/latest", get_community_facts, _READ_FACTS),
        ("GET", "/facts/range", get_community_fact_range, _READ_FACTS),
        ("GET", "/fact-schemas", get_community_fact_schemas, (SOURCE_READ,)),
    )
)
