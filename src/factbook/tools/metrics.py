"""The metric tools: fixed shapes, filled by the integrations configured for them."""

from typing import Annotated, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog.store import by_ref
from factbook.facts import fill_shape, shapes, store
from factbook.facts.shapes import Shape
from factbook.tools.tool import (
    SIZE_NOTE,
    Context,
    EntityArguments,
    Name,
    NameOrRefArguments,
    Namespace,
    Tool,
    argument,
    canonical,
    encode,
    existing,
)

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
        Annotated[int, argument("Most filePaths to return; all when left out.", 200, ge=1)]
        | UnsetType
    ) = UNSET

    def ref(self) -> str:
        """The canonical reference named by the arguments."""
        return canonical(UNSET, self.namespace, self.name)


def _metric(name: str, title: str, shape: Shape, about: str, arguments: type[Struct]) -> Tool:
    async def run(
        given: EntityArguments | NameOrRefArguments | RepositoryArguments, context: Context
    ) -> str:
        result = await _filled(shape, given.ref(), context)
        if isinstance(given, RepositoryArguments) and given.limit is not UNSET:
            result["filePaths"] = list(cast("list[str]", result["filePaths"]))[: given.limit]
        return encode(result)

    unknown = _NEEDED if shapes.is_needed(shape) else _UNKNOWN
    return Tool(name, title, f"{about} {unknown}", arguments, shapes.schema(shape), run)


async def _filled(shape: Shape, ref: str, context: Context) -> dict[str, object]:
    await existing(context.database, ref)
    sources, entity = context.sources.values(), None
    latest = await store.latest_of_ref(context.database, ref)
    if fill_shape.needs_entity(shape, sources, latest):
        found = await by_ref.entity(context.database, ref)
        entity = found and msgspec.json.decode(found.render())
    return fill_shape.filled(shape, sources, latest, entity)


TOOLS: tuple[Tool, ...] = (
    _metric(
        "get-codehost-metrics",
        "Code-host metrics of an entity",
        shapes.CODEHOST,
        "Returns pull request, merge time (hours), issue, collaboration, branch protection and "
        "code review figures of the repository behind a catalog entity. Give exactly one of name "
        f"and entityRef; both are accepted when they mean the same entity. {_DEFAULTS}",
        NameOrRefArguments,
    ),
    _metric(
        "get-security-metrics",
        "Security metrics of an entity",
        shapes.SECURITY,
        "Returns open scanner issues by severity, dependency alerts and branch protection of a "
        "catalog entity. Give exactly one of name and entityRef; both are accepted when they mean "
        f"the same entity. {_DEFAULTS}",
        NameOrRefArguments,
    ),
    _metric(
        "get-incident-metrics",
        "Incident metrics of an entity",
        shapes.INCIDENT,
        "Returns incident counts, mean times to resolve and to acknowledge (seconds), up time "
        f"(percent) and the set-up of the service behind a catalog entity. {_DEFAULTS}",
        EntityArguments,
    ),
    _metric(
        "get-observability-metrics",
        "Observability metrics of an entity",
        shapes.OBSERVABILITY,
        "Returns the numbers of service level objectives and of monitors of an entity. "
        f"{_DEFAULTS}",
        EntityArguments,
    ),
    _metric(
        "get-repository-info",
        "Files of an entity's repository",
        shapes.REPOSITORY,
        "Returns the file paths, their number and their types of the repository behind a "
        f"component. namespace defaults to default. {SIZE_NOTE}; `limit` shortens filePaths.",
        RepositoryArguments,
    ),
)
