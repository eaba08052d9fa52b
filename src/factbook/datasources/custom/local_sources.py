"""Sources without a host: their documents are entities, or files and paths of repositories."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.datasources.custom import fact_extraction
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.extraction import Expression
from factbook.datasources.custom.fact_extraction import ClientMaker, Reader, SourceReply
from factbook.datasources.custom.templates import NoValueError, as_it_is
from factbook.integrations.integration import Integration, split_targets
from factbook.outbound.outcomes import Missing, Outcome

# One after another, so that one body is in memory, and a batch ends in its time.
_FILES: Final = 3
_AT_ONCE: Final = 4
# So few that a batch ends in its time, however long each takes.
_DOCUMENTS: Final = 50
# With these an expression sees more than the members that it names.
_WIDE: Final = re.compile(r"[@*\\]")


class File(NamedTuple):
    """File of one repository at one code host; `target` is in that host's form."""

    host: str
    target: str
    path: str


class Files(Protocol):
    """Reader for files of repositories at whichever code host an entity points to."""

    def locate(self, entity: Mapping[str, Any]) -> tuple[str, str] | Missing:
        """The code host's source and the target there, or the reason that there is none."""

    async def read(self, file: File) -> bytes | Missing:
        """The contents of a file on the default branch."""

    async def paths(self, ref: str) -> list[str] | Missing:
        """The paths of all files in the repository of the entity with this reference."""


def integration(definition: CustomSourceDefinition, files: Files) -> Integration:
    """The integration of a source of files, of directories or of entities."""
    is_file = definition.type == "repository-file"
    return Integration(
        source=definition.source,
        credential=f"custom-{definition.source.id}",
        at_once=_AT_ONCE if is_file else 1,
        target=_target(definition, files),
        batches=partial(split_targets, size=_FILES if is_file else _DOCUMENTS),
        collect=partial(fact_extraction.collect, definition, reader(definition, files)),
    )


def reader(definition: CustomSourceDefinition, files: Files) -> Reader:
    """The reader of the targets of such a source."""
    match definition.type:
        case "repository-file":
            return partial(_read_file, files)
        case "repository-directory":
            return partial(_read_directory, files)
    return _read_entity


async def _read_file(files: Files, target: str, _connect: ClientMaker) -> SourceReply:
    place = File(*msgspec.json.decode(target, type=tuple[str, str, str]))
    request, body = {"path": place.path}, await files.read(place)
    if isinstance(body, Missing):
        return SourceReply(request, missing=body)
    return SourceReply(request, body)


async def _read_directory(files: Files, target: str, _connect: ClientMaker) -> SourceReply:
    ref, directory = msgspec.json.decode(target, type=tuple[str, str])
    request, paths = {"path": directory}, await files.paths(ref)
    if isinstance(paths, Missing):
        return SourceReply(request, missing=paths)
    prefix = f"{directory}/" if directory else ""
    below = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    return SourceReply(request, document={"paths": below, "count": len(below)})


async def _read_entity(target: str, _connect: ClientMaker) -> SourceReply:
    return SourceReply(document=msgspec.json.decode(target))


def path_of(definition: CustomSourceDefinition, entity: Mapping[str, Any]) -> str | Missing:
    """The path that the source reads in an entity's repository."""
    assert definition.path is not None, "a source of files has a path"
    try:
        path = definition.path.render(entity, as_it_is).strip("/")
    except NoValueError as error:
        return error.missing
    if (path or definition.type == "repository-file") and {"", ".", ".."} & set(path.split("/")):
        return Missing(Outcome.NO_ANNOTATION, "what the path names is not inside the repository")
    return Missing(Outcome.NO_ANNOTATION, "a path that cannot be") if "\0" in path else path


def _target(
    definition: CustomSourceDefinition, files: Files
) -> Callable[[Mapping[str, Any]], str | Missing]:
    if definition.type == "entity":
        return partial(_seen, _is_seen(definition))
    return partial(_place, definition, files)


def _seen(is_seen: Callable[[str], bool], entity: Mapping[str, Any]) -> str:
    """The part of an entity that the source reads, so that a run needs nothing else of it.

    Facts are not extracted from it at once, as that would delay the planning of a run.
    """
    seen = {name: part for name, part in entity.items() if is_seen(name)}
    return msgspec.json.encode(seen).decode()


def _place(
    definition: CustomSourceDefinition, files: Files, entity: Mapping[str, Any]
) -> str | Missing:
    """The file or directory that the source reads in an entity's repository."""
    place = files.locate(entity)
    if isinstance(place, Missing):
        return place
    path = path_of(definition, entity)
    if isinstance(path, Missing):
        return path
    parts = (*place, path) if definition.type == "repository-file" else (_ref(entity), path)
    return msgspec.json.encode(parts).decode()


def _ref(entity: Mapping[str, Any]) -> str:
    metadata = entity["metadata"]
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    return str(EntityRef.of(entity["kind"], namespace, metadata["name"]))


def _is_seen(definition: CustomSourceDefinition) -> Callable[[str], bool]:
    """Predicate for the members of an entity that the extractors may read."""
    extractors = definition.extractors.values()
    texts = [one.text for one in extractors if isinstance(one, Expression)]
    if len(texts) < len(extractors) or any(map(_WIDE.search, texts)):
        return lambda _: True
    return lambda name: any(name in text for text in texts)
