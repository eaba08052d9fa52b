"""Sources without a host: their documents are entities, or files and paths of repositories."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.datasources.custom import fact_extraction
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.extraction import Expression
from factbook.datasources.custom.files import File, Files
from factbook.datasources.custom.templates import NoValueError, as_it_is
from factbook.integrations.integration import Collected, Integration, portions
from factbook.outbound import HttpClient, Memory
from factbook.outbound.outcomes import Missing, Outcome

# One after another, so that one body is in memory, and a batch ends in its time.
_FILES: Final = 3
_AT_ONCE: Final = 4
# So few that a batch ends in its time, however long each takes.
_DOCUMENTS: Final = 50
# With these an expression sees more than the members that it names.
_WIDE: Final = re.compile(r"[@*\\]")


def of_files(definition: CustomSourceDefinition, files: Files) -> Integration:
    """The integration of a repository-file source."""

    async def collected(target: str) -> Collected:
        body = await files.read(File(*msgspec.json.decode(target, type=tuple[str, str, str])))
        if isinstance(body, Missing):
            return fact_extraction.nothing(body)
        return await fact_extraction.in_thread(fact_extraction.from_body, definition, body)

    named = partial(_file, definition, files)
    return _integration(definition, named, collected, size=_FILES, at_once=_AT_ONCE)


def of_directories(definition: CustomSourceDefinition, files: Files) -> Integration:
    """The integration of a repository-directory source."""

    async def collected(target: str) -> Collected:
        ref, directory = msgspec.json.decode(target, type=tuple[str, str])
        paths = await files.paths(ref)
        if isinstance(paths, Missing):
            return fact_extraction.nothing(paths)
        document = document_of(paths, directory)
        return await fact_extraction.in_thread(fact_extraction.from_document, definition, document)

    return _integration(definition, partial(_directory, definition, files), collected)


def of_entities(definition: CustomSourceDefinition) -> Integration:
    """The integration of a source whose document is the entity itself, as the catalog shows it.

    A target is the part of the entity that the source reads, so that a run needs nothing else of
    it. Facts are not extracted from it at once, as that would delay the planning of a run.
    """
    is_seen = _is_seen(definition)

    def target(entity: Mapping[str, Any]) -> str:
        seen = {name: part for name, part in entity.items() if is_seen(name)}
        return msgspec.json.encode(seen).decode()

    async def collected(target: str) -> Collected:
        document = msgspec.json.decode(target)
        return await fact_extraction.in_thread(fact_extraction.from_document, definition, document)

    return _integration(definition, target, collected)


def _integration(
    definition: CustomSourceDefinition,
    target: Callable[[Mapping[str, Any]], str | Missing],
    collected: Callable[[str], Awaitable[Collected]],
    *,
    size: int = _DOCUMENTS,
    at_once: int = 1,
) -> Integration:
    """The integration that collects the targets of a batch of this size one after another."""

    async def collect(
        targets: Sequence[str], _client: HttpClient, _memory: Memory, _now: int
    ) -> dict[str, Collected]:
        return {target: await collected(target) for target in targets}

    return Integration(
        source=definition.source,
        credential=f"custom-{definition.source.id}",
        at_once=at_once,
        target=target,
        batches=partial(portions, size=size),
        collect=collect,
    )


def document_of(paths: Sequence[str], directory: str) -> dict[str, Any]:
    """The document of a directory: the relative paths of the files in it, and their number."""
    prefix = f"{directory}/" if directory else ""
    below = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    return {"paths": below, "count": len(below)}


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


def _is_seen(definition: CustomSourceDefinition) -> Callable[[str], bool]:
    """Predicate for the members of an entity that the extractors may read."""
    extractors = definition.extractors.values()
    texts = [one.text for one in extractors if isinstance(one, Expression)]
    if len(texts) < len(extractors) or any(map(_WIDE.search, texts)):
        return lambda _: True
    return lambda name: any(name in text for text in texts)
