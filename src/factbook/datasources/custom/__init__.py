"""Custom sources: definitions that users write instead of code, turned into integrations."""

from collections.abc import Mapping

from factbook.datasources.custom import http_source, local_sources
from factbook.datasources.custom.connections import SourceConnection, Unusable, configured
from factbook.datasources.custom.definition import CustomSourceDefinition, parse
from factbook.datasources.custom.files import File, Files
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
]


def integration(
    definition: CustomSourceDefinition,
    connections: Mapping[str, SourceConnection | Unusable],
    files: Files,
) -> Integration | None:
    """The integration of a definition; None for a pushed source.

    Raises InputError if its connection is missing, unusable, or does not allow its method.
    """
    match definition.type:
        case "http":
            return http_source.integration(definition, connections)
        case "repository-file":
            return local_sources.of_files(definition, files)
        case "repository-directory":
            return local_sources.of_directories(definition, files)
        case "entity":
            return local_sources.of_entities(definition)
    return None
