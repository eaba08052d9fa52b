"""Trials of definitions on an entity: on the server, or replayed from the answer in a file."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from factbook.catalog.ref import EntityRef
from factbook.cli import definition_files
from factbook.cli.output import note, print_table, say
from factbook.cli.sources.files import Read
from factbook.client import Client, Tried, TriedAnswer
from factbook.datasources.custom import (
    CustomSourceDefinition,
    fact_extraction,
    http_source,
    local_sources,
)
from factbook.errors import InputError
from factbook.facts import reasons
from factbook.integrations.integration import Collected
from factbook.outbound.outcomes import Missing

_LINES: Final = 12
_LINE: Final = 200
# Reasons that say something about the entity; all others are problems.
_FINE: Final = {reasons.NOT_APPLICABLE, reasons.NO_ANNOTATION}


class Recording(msgspec.Struct, rename="camel", kw_only=True):
    """A recorded trial."""

    source: str
    entity: dict[str, Any]
    request: dict[str, Any] | None
    answer: TriedAnswer
    reasons: dict[str, str]


def tried(
    one: Read,
    ref: EntityRef,
    folder: str | None,
    connect: Callable[[], AbstractContextManager[Client]],
    *,
    renew: bool,
) -> Tried:
    """The trial of a definition on an entity.

    With a folder: from its recording, without a server, or else recorded there. Raises InputError
    for an unusable recording, or an answer that cannot be recorded.
    """
    definition = one.definition
    if folder is None:
        with connect() as client:
            return _asked(client, definition, ref)
    file = _file_of(folder, one.id, ref)
    recording = None if renew else load(file)
    if recording is not None:
        note(f"Replayed: {file}")
        return _replayed(recording, definition)
    with connect() as client:
        entity = client.entity(str(ref))
        found = _asked(client, definition, ref)
    _save(file, definition, entity, found)
    note(f"Recorded: {file}. Look at it before you commit it.")
    return found


def show(one: Read, ref: EntityRef, trial: Tried) -> None:
    """Print the request, the beginning of the answer, and the facts."""
    say(f"{one.id} about {ref}")
    if trial.request is not None:
        say(f"Request: {_request_line(trial.request)}")
    if trial.answer is not None:
        _show_answer(trial.answer)
    for reason in filter(None, [trial.reasons.get("")]):
        say(f"No facts: {reason}")
    print_table(["Fact", "Type", "Value", "Why none"], _rows(one.definition, trial))


def as_json(one: Read, ref: EntityRef, trial: Tried) -> dict[str, Any]:
    """The trial in the form of `--json`."""
    return {"id": one.id, "entity": str(ref), **msgspec.to_builtins(trial)}


def has_failed(one: Read, trial: Tried) -> bool:
    """True if the trial shows a problem: no fact at all, or one that should have a value."""
    if one.definition.type == "push":
        return False
    words = {reasons.word(reason) for reason in trial.reasons.values()}
    return not trial.facts or bool(words - _FINE)


def _asked(client: Client, definition: CustomSourceDefinition, ref: EntityRef) -> Tried:
    found = client.test_data_source(definition.document, str(ref))
    return msgspec.structs.replace(found, request=_without_headers(found.request))


def _request_line(request: dict[str, Any]) -> str:
    shown = " ".join(str(request[key]) for key in ("method", "path") if key in request)
    body = request.get("body")
    return shown if body is None else f"{shown} {msgspec.json.encode(body).decode()}"


def _show_answer(answer: TriedAnswer) -> None:
    about = [str(part) for part in (answer.status, answer.content_type) if part is not None]
    say(" ".join(["Answer:", *about, f"({len(answer.body):,} characters)"]))
    lines = answer.body.splitlines()
    for line in lines[:_LINES]:
        say(f"  {line[:_LINE]}{'…' if len(line) > _LINE else ''}")
    if len(lines) > _LINES or answer.truncated:
        say("  …")


def _rows(definition: CustomSourceDefinition, trial: Tried) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for fact in definition.source.schema:
        known = fact.name in trial.facts
        value = msgspec.json.encode(trial.facts[fact.name]).decode() if known else None
        rows.append((fact.name, fact.type, value, trial.reasons.get(fact.name)))
    return rows


def _file_of(folder: str, source_id: str, ref: EntityRef) -> Path:
    """Path of the recording for a source and an entity."""
    name = ".".join(quote(part, safe="") for part in (ref.kind, ref.namespace, ref.name))
    return Path(folder, source_id, f"{name}{definition_files.RECORDING}")


def load(file: Path) -> Recording | None:
    """Recording in a file; None when there is no file. Raises InputError for an invalid one."""
    try:
        return msgspec.json.decode(definition_files.content(str(file)), type=Recording)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{file} is not a recording; --record makes a new one.") from None


def _save(
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


def _replayed(recording: Recording, definition: CustomSourceDefinition) -> Tried:
    """The trial again, with the current definition.

    Raises InputError when the definition now makes another request.
    """
    request = _request(definition, recording.entity)
    if isinstance(request, Missing):
        return Tried(None, None, {}, {"": request.reason})
    if request != recording.request:
        raise InputError(
            f"{definition.source.id} asks for something else than was recorded; "
            "--record records it again."
        )
    found = _collected(recording, definition)
    if found is None:
        return Tried(request, recording.answer, {}, recording.reasons)
    checked = definition.source.check(found.values)
    missing = {**checked.reasons, **found.reasons}
    return Tried(request, recording.answer, checked.stored, missing)


def _request(
    definition: CustomSourceDefinition, entity: Mapping[str, Any]
) -> dict[str, Any] | Missing | None:
    """Request of the current definition, in the recorded form."""
    if definition.request is not None:
        rendered = http_source.rendered(definition.request, entity)
        if isinstance(rendered, Missing):
            return rendered
        return _without_headers(msgspec.to_builtins(rendered))
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


def _without_headers(request: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A request without its headers, which may hold a misplaced secret."""
    if request is None:
        return None
    return {name: value for name, value in request.items() if name != "headers"}
