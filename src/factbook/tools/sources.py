"""Lookup of the data sources and facts named by the arguments of a tool."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from factbook.definitions.store import UNPUBLISHED
from factbook.errors import ToolError, suggestion
from factbook.facts.datasource import DataSource
from factbook.tools import essential_facts
from factbook.tools.tool import Context, argument

# An error names no more than these: with many sources it would be longer than what was asked for.
_NAMED = 100


SourceId = Annotated[
    str,
    argument(
        "Id of a data source, from get-data-source-discovery; or `entity` for owner, ownerExists, "
        "type, lifecycle, tags and labels.",
        "entity-metadata",
    ),
]


def one(source_id: str, context: Context) -> DataSource:
    """The data source with this id; raises ToolError, which lists the existing ones."""
    source = context.sources.get(source_id)
    if source is None and source_id == essential_facts.ID:
        return essential_facts.SOURCE
    if source is None:
        raise ToolError(
            f'There is no data source "{source_id}".{suggestion(source_id, context.sources)} '
            "Call get-data-source-discovery for their schemas."
        )
    return source


def check_facts(source: DataSource, names: Iterable[str]) -> None:
    """Raise ToolError for names of facts that the source does not have."""
    known = [fact.name for fact in source.schema]
    if unknown := sorted(set(names).difference(known)):
        raise ToolError(
            f"The data source {source.id} has no fact {_listed(unknown)}."
            f"{suggestion(unknown[0], known)}"
        )


def having(names: Iterable[str], context: Context) -> list[str]:
    """The ids of the sources with one of these facts; raises ToolError for unknown names."""
    asked, found = set(names), dict[str, set[str]]()
    for source in context.sources.values():
        if some := asked.intersection(fact.name for fact in source.schema):
            found[source.id] = some
    if unknown := sorted(asked.difference(*found.values())):
        raise ToolError(
            f"No data source has a fact {_listed(unknown)}."
            f"{near_facts(unknown[0], context.sources)} "
            "Call get-data-source-discovery for the facts that there are."
        )
    return list(found)


def near_facts(name: str, sources: Mapping[str, DataSource]) -> str:
    """The facts of all data sources that are called like `name`, and the first of all."""
    known = {fact.name for source in sources.values() for fact in source.schema}
    return suggestion(name, sorted(known))


def is_draft(source: DataSource, version: str) -> bool:
    """Return true if the source wrote this version as a draft."""
    return source.draft or version == UNPUBLISHED


def _listed(names: Iterable[str]) -> str:
    words = list(names)
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more
