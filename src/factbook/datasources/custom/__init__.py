"""Custom sources: definitions that users write instead of code, turned into integrations."""

from collections.abc import Mapping
from functools import partial

from factbook.datasources.custom import http_source, local_sources
from factbook.datasources.custom.connections import SourceConnection, Unusable, configured
from factbook.datasources.custom.definition import CustomSourceDefinition, parse
from factbook.datasources.custom.fact_extraction import Reader
from factbook.datasources.custom.http_source import refusal_of
from factbook.datasources.custom.local_sources import File, Files
from factbook.integrations.integration import Integration

__all__ = [
    "CustomSourceDefinition",
    "File",
    "Files",
    "SourceConnection",
    "Unusable",
    "configured",
    "integration",
    "parse",
    "reader",
    "refusal_of",
]


def integration(
    definition: CustomSourceDefinition,
    connections: Mapping[str, SourceConnection | Unusable],
    files: Files,
) -> Integration | None:
    """The integration of a definition; None for a pushed source.

    One whose connection its owner may not use calls nobody. Raises InputError if its connection is
    missing, unusable, or does not allow its method.
    """
    match definition.type:
        case "http":
            return http_source.integration(definition, connections)
        case "push":
            return None
    return local_sources.integration(definition, files)


def reader(
    definition: CustomSourceDefinition,
    connections: Mapping[str, SourceConnection | Unusable],
    files: Files,
) -> Reader:
    """The reader of the targets of a source that is collected; raises InputError as above."""
    if definition.request is not None:
        connection = http_source.connection_of(definition, connections)
        return partial(http_source.reply, connection)
    return local_sources.reader(definition, files)
