"""Recorded answers of a source for an entity, kept in a file and replayed into facts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from factbook.catalog.ref import EntityRef
from factbook.cli.sources import files
from factbook.client import Tried, TriedAnswer
from factbook.datasources.custom import (
    CustomSourceDefinition,
    fact_extraction,
    http_source,
    local_sources,
)
from factbook.errors import InputError
from factbook.integrations.integration import Collected
from factbook.outbound.outcomes import Missing


class Recording(msgspec.Struct, rename="camel", kw_only=True):
    """A recorded trial."""

    source: str
    entity: dict[str, Any]
    request: dict[str, Any] | None
    answer: TriedAnswer
    reasons: dict[str, str]


def file_of(folder: str, source_id: str, ref: EntityRef) -> Path:
    """Path of the recording for a source and an entity."""
    name = ".".join(quote(part, safe="") for part in (ref.kind, ref.namespace, ref.name))
    return Path(folder, source_id, f"{name}{files.RECORDING}")


def load(file: Path) -> Recording | None:
    """Recording in a file; None when there is no file. Raises InputError for an invalid one."""
    try:
        return msgspec.json.decode(files.content(str(file)), type=Recording)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{file} is not a recording; --record makes a new one.") from None


def save(
    file: Path, definition: CustomSourceDefinition, entity: Mapping[str, Any], tried: Tried
) -> None:
    """Record a trial; raises InputError for one that could not be replayed."""
    answer = tried.answer
    if answer is None:
        raise InputError("There was no answer, so nothing was recorded.")
    if answer.truncated:
        raise InputError("The answer is too long to be recorded.")
    recording = Recording(
        source=definition.source.id,
        entity=dict(entity),
        request=tried.request,
        answer=answer,
        reasons=tried.reasons,
    )
    text = msgspec.json.format(msgspec.json.encode(recording), indent=2) + b"\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None


def replayed(recording: Recording, definition: CustomSourceDefinition) -> Tried:
    """The trial again, with the current definition.

    Raises InputError when the definition now makes another request.
    """
    request = _request(definition, recording.entity)
    if isinstance(request, Missing):
        return Tried(None, None, {}, {"": request.reason})
    if request != recording.request:
        raise InputError(
            f"{definition.source.id} asks for something else than was recorded; "
            "--record records it anew."
        )
    found = _collected(recording, definition)
    if found is None:
        return Tried(request, recording.answer, {}, recording.reasons)
    checked = definition.source.check(found.values)
    reasons = {**checked.reasons, **found.reasons}
    return Tried(request, recording.answer, checked.stored, reasons)


def _request(
    definition: CustomSourceDefinition, entity: Mapping[str, Any]
) -> dict[str, Any] | Missing | None:
    """Request of the current definition, in the recorded form."""
    if definition.request is not None:
        rendered = http_source.rendered(definition.request, entity)
        if isinstance(rendered, Missing):
            return rendered
        return shown(msgspec.to_builtins(rendered))
    if definition.path is not None:
        path = local_sources.path_of(definition, entity)
        return path if isinstance(path, Missing) else {"path": path}
    return None


def _collected(recording: Recording, definition: CustomSourceDefinition) -> Collected | None:
    """Result of the definition for the answer; None for an answer that was a failure."""
    status, body = recording.answer.status, recording.answer.body.encode()
    if status is not None and not 200 <= status < 300:
        return None
    return fact_extraction.from_body(definition, body)


def shown(request: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A request without its headers, which may hold a misplaced secret."""
    if request is None:
        return None
    return {name: value for name, value in request.items() if name != "headers"}
