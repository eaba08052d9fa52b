"""Sources whose document is a file, or the list of files, of the repository of an entity."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.datasources.custom import fact_extraction as taking
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.files import File, Files
from factbook.datasources.custom.templates import NoValueError, as_it_is
from factbook.integrations.integration import Collected, Integration, asking_nobody, portions
from factbook.outbound import HttpClient, Memory
from factbook.outbound.outcomes import Missing, Outcome

# One after another, so that one body is in memory, and a batch ends in its time.
_FILES: Final = 3
_DIRECTORIES: Final = 50
_AT_ONCE: Final = 4


def of_files(definition: CustomSourceDefinition, files: Files) -> Integration:
    """What collects a repository-file source."""
    return asking_nobody(
        definition.source,
        queue=f"custom-{definition.source.id}",
        at_once=_AT_ONCE,
        target=partial(_file, definition, files),
        batches=partial(portions, size=_FILES),
        collect=partial(_collect_files, definition, files),
    )


def of_directories(definition: CustomSourceDefinition, files: Files) -> Integration:
    """What collects a repository-directory source."""
    return asking_nobody(
        definition.source,
        queue=f"custom-{definition.source.id}",
        target=partial(_directory, definition, files),
        batches=partial(portions, size=_DIRECTORIES),
        collect=partial(_collect_directories, definition, files),
    )


def document_of(paths: Sequence[str], directory: str) -> dict[str, Any]:
    """The document of a directory: the paths of files in it, from there on, and their number."""
    prefix = f"{directory}/" if directory else ""
    below = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    return {"paths": below, "count": len(below)}


def path_of(definition: CustomSourceDefinition, entity: Mapping[str, Any]) -> str | Missing:
    """The path that the source looks at in the repository of an entity."""
    assert definition.path is not None, "a source of files has a path"
    try:
        path = definition.path.render(entity, as_it_is).strip("/")
    except NoValueError as error:
        return error.missing
    if (path or definition.type == "repository-file") and {"", ".", ".."} & set(path.split("/")):
        return Missing(Outcome.NO_ANNOTATION, "what the path names is not inside the repository")
    return Missing(Outcome.NO_ANNOTATION, "a path that cannot be") if "\0" in path else path


def _file(
    definition: CustomSourceDefinition, files: Files, entity: Mapping[str, Any]
) -> str | Missing:
    place = files.locate(entity)
    if isinstance(place, Missing):
        return place
    path = path_of(definition, entity)
    return path if isinstance(path, Missing) else _text(*place, path)


def _directory(
    definition: CustomSourceDefinition, files: Files, entity: Mapping[str, Any]
) -> str | Missing:
    place = files.locate(entity)
    if isinstance(place, Missing):
        return place
    path = path_of(definition, entity)
    return path if isinstance(path, Missing) else _text(_ref(entity), path)


def _ref(entity: Mapping[str, Any]) -> str:
    metadata = entity["metadata"]
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    return str(EntityRef.of(entity["kind"], namespace, metadata["name"]))


def _text(*parts: str) -> str:
    return msgspec.json.encode(parts).decode()


async def _collect_files(
    definition: CustomSourceDefinition,
    files: Files,
    targets: Sequence[str],
    _client: HttpClient,
    _memory: Memory,
    _now: int,
) -> dict[str, Collected]:
    async def one(target: str) -> Collected:
        body = await files.read(File(*msgspec.json.decode(target, type=tuple[str, str, str])))
        if isinstance(body, Missing):
            return taking.nothing(body)
        return await taking.in_thread(taking.from_body, definition, body)

    return {target: await one(target) for target in targets}


async def _collect_directories(
    definition: CustomSourceDefinition,
    files: Files,
    targets: Sequence[str],
    _client: HttpClient,
    _memory: Memory,
    _now: int,
) -> dict[str, Collected]:
    async def one(target: str) -> Collected:
        ref, directory = msgspec.json.decode(target, type=tuple[str, str])
        paths = await files.paths(ref)
        if isinstance(paths, Missing):
            return taking.nothing(paths)
        document = document_of(paths, directory)
        return await taking.in_thread(taking.from_document, definition, document)

    return {target: await one(target) for target in targets}
