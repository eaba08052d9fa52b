"""Trials of definitions on an entity, on the server or from a recording."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

import msgspec

from factbook.catalog.ref import EntityRef
from factbook.cli.output import note, print_table, say
from factbook.cli.sources import recordings
from factbook.cli.sources.files import Read
from factbook.client import Client, Tried, TriedAnswer
from factbook.datasources.custom import CustomSourceDefinition
from factbook.facts import reasons

_LINES: Final = 12
_LINE: Final = 200
# Reasons that say something about the entity; all others are problems.
_FINE: Final = {reasons.NOT_APPLICABLE, reasons.NO_ANNOTATION}


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
    file = recordings.file_of(folder, one.id, ref)
    recording = None if renew else recordings.load(file)
    if recording is not None:
        note(f"Replayed: {file}")
        return recordings.replayed(recording, definition)
    with connect() as client:
        entity = client.entity(str(ref))
        found = _asked(client, definition, ref)
    recordings.save(file, definition, entity, found)
    note(f"Recorded: {file}. Look at it before you commit it.")
    return found


def show(one: Read, ref: EntityRef, trial: Tried) -> None:
    """Print the request, the beginning of the answer, and the facts."""
    say(f"{one.id} about {ref}")
    if trial.request is not None:
        say(f"Request: {_request(trial.request)}")
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
    return msgspec.structs.replace(found, request=recordings.shown(found.request))


def _request(request: dict[str, Any]) -> str:
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
