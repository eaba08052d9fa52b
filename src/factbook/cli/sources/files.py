"""Definitions of sources from files and directories, with all problems of all of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from factbook.cli import definition_files
from factbook.datasources import custom
from factbook.datasources.custom import CustomSourceDefinition
from factbook.definitions import documents
from factbook.errors import InvalidItemsError


class Read(NamedTuple):
    """A valid definition, and its place."""

    definition: CustomSourceDefinition
    origin: str

    @property
    def id(self) -> str:
        """Id of the source."""
        return self.definition.source.id

    @property
    def key(self) -> tuple[str, str]:
        return "id: is the id of", self.id


def read(places: Sequence[str]) -> list[Read]:
    """The definitions in files and directories; raises the errors of `definition_files.read`."""
    return definition_files.read(places, "a definition of a source", _parse)


def _parse(document: dict[str, Any], origin: str) -> Read:
    if problems := documents.service_set(document):
        raise InvalidItemsError(problems)
    return Read(custom.parse(document), origin)
