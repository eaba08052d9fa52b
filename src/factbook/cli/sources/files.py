"""Definitions of sources from files and directories, with all problems of all of them."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import yaml

from factbook.cli.connection import count
from factbook.cli.definition_files import content, every_file
from factbook.cli.documents import STDIN, DocumentsError, parse
from factbook.cli.failures import USAGE, CommandError
from factbook.datasources import custom
from factbook.datasources.custom import CustomSourceDefinition, yaml_text
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.definitions import documents
from factbook.errors import InputError, InvalidItemsError


class Read(NamedTuple):
    """A valid definition, and its place, e.g. `builds.yaml document 1 (line 1)`."""

    definition: CustomSourceDefinition
    origin: str

    @property
    def id(self) -> str:
        """Id of the source."""
        return self.definition.source.id


def read(places: Sequence[str]) -> list[Read]:
    """The definitions in files, and in directories and the directories below them.

    Raises Failure listing every problem of every file, each with its file, document and path, and
    InputError when there is no definition at all.
    """
    problems: list[str] = []
    found = [one for file in every_file(places, problems) for one in _read_file(file, problems)]
    first: dict[str, str] = {}
    for one in found:
        if one.id in first:
            problems.append(f"{one.origin}: id: is the id of {first[one.id]} too")
        first.setdefault(one.id, one.origin)
    if problems:
        raise CommandError(f"{count(problems, 'problem')}:", USAGE, problems)
    if not found:
        # What made the files may have failed, and pruning would remove everything.
        raise InputError(f"No definition of a source in {', '.join(places)}.")
    return found


def _read_file(file: str, problems: list[str]) -> list[Read]:
    try:
        return _definitions(file, problems)
    except OSError as error:
        problems.append(f"{file} cannot be read: {error.strerror}.")
    except UnreadableDocumentError as error:
        problems.append(f"{file} {error}.")
    except DocumentsError as error:
        problems += error.problems
    except InputError as error:
        problems.append(error.message)
    return []


def _definitions(file: str, problems: list[str]) -> list[Read]:
    """Valid definitions of a file.

    Raises OSError, UnreadableDocumentError or InputError for the whole of it.
    """
    name = "standard input" if file == STDIN else file
    data = content(file)
    with suppress(yaml.YAMLError):  # `parse` says where
        yaml_text.check(data)  # JSON is YAML as well
    found = []
    for document in parse(data, name, "a definition of a source") or []:
        value = msgspec.json.decode(document.entity)
        try:
            found.append(Read(_definition(value), document.origin))
        except InvalidItemsError as error:
            problems += [
                f"{document.origin}: {problem['path']}: {problem['message']}"
                for problem in error.details["problems"]
            ]
    return found


def _definition(document: dict[str, Any]) -> CustomSourceDefinition:
    if problems := documents.service_set(document):
        raise InvalidItemsError(problems)
    return custom.parse(document)
