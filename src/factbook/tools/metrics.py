"""The metric tools: fixed shapes, filled from the stored facts of the sources that can.

Sources that fill a shape name their facts by it: `codehost.pullRequests.total`.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog import filters
from factbook.catalog.store import stored_entities
from factbook.clock import iso
from factbook.facts import schema, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.schema import (
    NEVER_COLLECTED,
    NO_ANNOTATION,
    NOT_APPLICABLE,
    NOT_CONFIGURED,
    NOT_SENT,
    Shape,
    reason_word,
)
from factbook.integrations import catalog
from factbook.tools import sources as source_lookup
from factbook.tools.entity_facts import build_stale_members
from factbook.tools.tool import (
    SIZE_NOTE,
    Context,
    EntityArguments,
    Name,
    NameOrRefArguments,
    Namespace,
    Tool,
    build_canonical_ref,
    describe_argument,
    encode_result,
    find_existing_entity,
)

# What one source says stands behind what others do, the later the more.
_HELPLESS = (NOT_APPLICABLE, NOT_SENT, NEVER_COLLECTED, NO_ANNOTATION)
_UNKNOWN = (
    "Whatever cannot be determined is `unknown` or left out, with the reason in unknownReasons; "
    "no figure is ever made up."
)
_NEEDED = (
    "While one of these numbers is unknown the answer is an error, whose text has the values that "
    "are known, why the others are not, and what helps."
)
_DEFAULTS = "kind defaults to component, namespace to default."


class RepositoryArguments(Struct, forbid_unknown_fields=True):
    """A component."""

    name: Name
    namespace: Namespace = UNSET
    limit: (
        Annotated[int, describe_argument("Most filePaths to return; all when left out.", 200, ge=1)]
        | UnsetType
    ) = UNSET

    def ref(self) -> str:
        """The canonical reference named by the arguments."""
        return build_canonical_ref(UNSET, self.namespace, self.name)


def _build_metric_tool(
    name: str, title: str, shape: Shape, about: str, arguments: type[Struct]
) -> Tool:
    async def run(
        given: EntityArguments | NameOrRefArguments | RepositoryArguments, context: Context
    ) -> str:
        result = await _fill_shape(shape, given.ref(), context)
        if isinstance(given, RepositoryArguments) and given.limit is not UNSET:
            result["filePaths"] = list(cast("list[str]", result["filePaths"]))[: given.limit]
        return encode_result(result)

    unknown = _NEEDED if schema.needs_values(shape) else _UNKNOWN
    return Tool(name, title, f"{about} {unknown}", arguments, schema.shape_schema(shape), run)


async def _fill_shape(shape: Shape, ref: str, context: Context) -> dict[str, object]:
    await find_existing_entity(context.database, ref)
    sources, entity = context.sources.values(), None
    latest = await store.list_latest_by_ref(context.database, ref)
    if _needs_entity_document(shape, sources, latest):
        found = await stored_entities.read_entity(context.database, ref)
        entity = found and msgspec.json.decode(found.render())
    result = fill_from_latest(shape, sources, latest, entity)
    about = {reason_word(one) for one in cast("dict[str, str]", result["unknownReasons"]).values()}
    if about & source_lookup.REASONS_ABOUT_ANNOTATIONS:
        if entity is None and (found := await stored_entities.read_entity(context.database, ref)):
            entity = msgspec.json.decode(found.render())
        result |= _list_details(shape, sources, entity or {})
    return result


def _list_details(
    shape: Shape, sources: Iterable[DataSource], entity: Mapping[str, Any]
) -> dict[str, object]:
    """The annotations that sources of the shape go by, with the values that they have."""
    able = [source for source in sources if _fills_shape(source, shape)]
    found = {
        one.id: about for one in able if (about := source_lookup.describe_annotations(one, entity))
    }
    return {"unknownDetails": found} if found else {}


def fill_from_latest(
    shape: Shape,
    sources: Iterable[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> dict[str, object]:
    """The result for one entity, from the latest facts by source id.

    If several sources have a value, the first one wins; those of an owner come last. `entity` has
    the form that the catalog shows; it is used only for sources that have stored nothing about it,
    and may be None if there is none. Raises ToolError like `shapes.fill`.
    """
    able = _list_able_sources(shape, sources, latest, entity)
    values: dict[str, object] = {}
    reasons: dict[str, str] = {}
    times: dict[str, int] = {}
    stale = list[str]()
    for member in shape.members:
        for path, _ in member.paths:
            name = f"{shape.name}.{path}"
            asked = [one for one in able if any(fact.name == name for fact in one.schema)]
            holder = next((one for one in asked if name in _read_latest_facts(latest, one)), None)
            if holder is None:
                reasons[path] = _explain_missing(name, asked, latest, entity)
                continue
            found = latest[holder.id]
            values[path] = found.facts[name]
            time = found.kept.get(name, found.written_at)
            stale += [path] if name in found.kept else []
            times[member.name] = min(time, times.get(member.name, time))
    collected_at = {name: iso(time) for name, time in times.items()}
    filled = schema.fill_shape(shape, values, reasons, collected_at)
    return filled | build_stale_members(values, frozenset(stale))


def _list_able_sources(
    shape: Shape,
    sources: Iterable[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> list[DataSource]:
    """The sources of the shape, without those of other owners about which there is nothing.

    Those of an owner come last, so that no group overrides what was defined for everybody.
    """
    able = [
        source
        for source in sources
        if _fills_shape(source, shape)
        and (source.id in latest or entity is None or _is_of_owner(source, entity))
    ]
    return sorted(able, key=lambda source: source.owner is not None)


def _is_of_owner(source: DataSource, entity: Mapping[str, Any]) -> bool:
    return source.owner is None or filters.matches_filter(source.ownership, dict(entity))


def _needs_entity_document(
    shape: Shape, sources: Iterable[DataSource], latest: Mapping[str, Latest]
) -> bool:
    """Return true if a source of the shape has stored nothing: its filter is needed."""
    return any(source.id not in latest for source in sources if _fills_shape(source, shape))


def _fills_shape(source: DataSource, shape: Shape) -> bool:
    return any(fact.name.startswith(f"{shape.name}.") for fact in source.schema)


def _read_latest_facts(latest: Mapping[str, Latest], source: DataSource) -> Mapping[str, object]:
    found = latest.get(source.id)
    return {} if found is None else found.facts


def _explain_missing(
    name: str,
    asked: list[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> str:
    """The reason for a missing value: of several reasons, the most actionable one.

    A source that failed may still have the value; nothing can be done about a source that has no
    such value, or that the entity does not point to.
    """
    found = [_find_reason(name, source, latest, entity) for source in asked]
    return min(found, key=_rank_reason, default=NOT_CONFIGURED)


def _rank_reason(reason: str) -> int:
    said = reason_word(reason)
    return _HELPLESS.index(said) + 1 if said in _HELPLESS else 0


def _find_reason(
    name: str,
    source: DataSource,
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> str:
    stored = latest.get(source.id)
    if stored is not None:
        return find_reason(name, stored.reasons) or NEVER_COLLECTED
    if entity is not None and not filters.matches_filter(source.selection, dict(entity)):
        return NO_ANNOTATION
    return NEVER_COLLECTED


async def _run_compliance(arguments: EntityArguments, context: Context) -> str:
    """The compliance shape of the entity, read from the catalog at this moment."""
    found = await find_existing_entity(context.database, arguments.ref(), owners=True)
    values = catalog.list_compliance_values(found.compliance)
    return encode_result(schema.fill_shape(schema.COMPLIANCE, values, {}, {"": iso(context.now)}))


TOOLS: tuple[Tool, ...] = (
    _build_metric_tool(
        "get-codehost-metrics",
        "Code-host metrics of an entity",
        schema.CODEHOST,
        "Returns pull request, merge time (hours), issue, collaboration, branch protection and "
        "code review figures of the repository behind a catalog entity. Give exactly one of name "
        f"and entityRef; both are accepted when they mean the same entity. {_DEFAULTS}",
        NameOrRefArguments,
    ),
    _build_metric_tool(
        "get-security-metrics",
        "Security metrics of an entity",
        schema.SECURITY,
        "Returns open scanner issues by severity, dependency alerts and branch protection of a "
        "catalog entity. Give exactly one of name and entityRef; both are accepted when they mean "
        f"the same entity. {_DEFAULTS}",
        NameOrRefArguments,
    ),
    _build_metric_tool(
        "get-incident-metrics",
        "Incident metrics of an entity",
        schema.INCIDENT,
        "Returns incident counts, mean times to resolve and to acknowledge (seconds), up time "
        f"(percent) and the set-up of the service behind a catalog entity. {_DEFAULTS}",
        EntityArguments,
    ),
    _build_metric_tool(
        "get-observability-metrics",
        "Observability metrics of an entity",
        schema.OBSERVABILITY,
        "Returns the numbers of service level objectives and of monitors of an entity. "
        f"{_DEFAULTS}",
        EntityArguments,
    ),
    Tool(
        name="get-entity-compliance",
        title="Compliance of an entity",
        description=(
            "Says whether a catalog entity has a title, description, tags, owner, documentation "
            "and relations. Read from the catalog at the moment of the call. kind defaults to "
            "component, namespace to default. A value that cannot be determined is `unknown`, with "
            "the reason in unknownReasons."
        ),
        arguments=EntityArguments,
        output_schema=schema.shape_schema(schema.COMPLIANCE),
        run=_run_compliance,
    ),
    _build_metric_tool(
        "get-repository-info",
        "Files of an entity's repository",
        schema.REPOSITORY,
        "Returns the file paths, their number and their types of the repository behind a "
        f"component. namespace defaults to default. {SIZE_NOTE}; `limit` shortens filePaths.",
        RepositoryArguments,
    ),
)
