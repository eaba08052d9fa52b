"""Sources as code: files, plans and trials, and the files of `factbook sources new`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from factbook.catalog import ref
from factbook.catalog.ref import EntityRef
from factbook.cli import definitions
from factbook.cli.command_parts import (
    NOT_AUTHORISED,
    REFUSED,
    USAGE,
    CommandError,
    format_count,
    print_note,
    print_table,
    say,
)
from factbook.cli.definitions import DELETION, PlanStep, StoredDocuments, compare_document
from factbook.cli.sources import SourceType
from factbook.client import Client, DataSource, Tried, TriedAnswer
from factbook.datasources.custom import definition, sources
from factbook.datasources.custom.definition import OWNED_TYPES, SOURCE_TYPES, CustomSourceDefinition
from factbook.datasources.stores import describe_lost_facts
from factbook.definitions import documents
from factbook.errors import InputError, InvalidItemsError
from factbook.facts import schema
from factbook.integrations import VENDORS
from factbook.integrations.integration import Collected
from factbook.outbound.outcomes import Missing

_TEMPLATES: Final = Path(__file__).with_name("scaffold")
_NAME: Final = re.compile(r"[a-z][a-z0-9]{1,39}", re.ASCII)
# Templates by path in the new package.
_FILES: Final = {
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "src/factbook_NAME/__init__.py": "integration.py",
    "tests/test_NAME.py": "test_integration.py",
}

_HEAD: Final = """\
# A data source of Factbook.
<test>#   factbook sources plan <file>                 shows what differs from the server
#   factbook sources apply <file>                publishes it
"""
_TEST: Final = "#   factbook sources test <file> --entity REF    tries it on one entity\n"

_LINES: Final = 12
_LINE: Final = 200
# Reasons that are about the entity; all others are problems.
_FINE: Final = {schema.NOT_APPLICABLE, schema.NO_ANNOTATION}


class SourceFile(NamedTuple):
    """A valid definition and its place."""

    definition: CustomSourceDefinition
    origin: str

    @property
    def id(self) -> str:
        """Id of the source."""
        return self.definition.source.id

    @property
    def key(self) -> tuple[str, str]:
        return "id: is the id of", self.id


def read_source_files(places: Sequence[str]) -> list[SourceFile]:
    """Read the definitions in files and directories; raises as `definitions.read_definitions`."""
    return definitions.read_definitions(places, "a definition of a source", _parse_source_file)


def _parse_source_file(document: dict[str, Any], origin: str) -> SourceFile:
    if problems := documents.service_set_problems(document):
        raise InvalidItemsError(problems)
    return SourceFile(definition.parse_source_definition(document), origin)


@dataclass(frozen=True)
class SourceStep(PlanStep):
    """Change of one source; `breaking` describes lost facts, by name."""

    results = "facts and their history"
    breaking: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[tuple[str, str | None]]:
        yield from super().lines()
        for name, what in self.breaking.items():
            yield f"! {name} {what}: publishing this takes --force", "red"

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "breaking": dict(self.breaking)}


def plan_sources_of(
    client: Client, read: Sequence[SourceFile], *, drafts: bool, prune: bool
) -> list[SourceStep]:
    """Plan the steps that make the server match the files: changes in file order, then deletions.

    Raises CommandError for a builtin source's id, or a token that may not read definitions.
    """
    ids = [source.id for source in list_server_sources(client)]
    there = {one.id: client.data_source(one.id) for one in read if one.id in set(ids)}
    if foreign := [one for one in read if one.id in there and not _is_defined(there[one.id])]:
        lines = [f"{one.origin}: id: {one.id} is the id of a builtin source" for one in foreign]
        raise CommandError(f"{format_count(lines, 'problem')}, nothing was written:", USAGE, lines)
    steps = [_source_step(one, there.get(one.id), drafts=drafts) for one in read]
    if prune:
        kept = {one.id for one in read}
        gone = [id_ for id_ in ids if id_ not in kept and _is_defined(client.data_source(id_))]
        steps += [SourceStep(DELETION, id_) for id_ in gone]
    return [step for step in steps if step is not None]


def list_server_sources(client: Client) -> Iterator[DataSource]:
    """Iterate over the data sources on the server."""
    page = client.data_sources()
    yield from page.data_sources
    while page.next_cursor:
        page = client.data_sources(cursor=page.next_cursor)
        yield from page.data_sources


def check_breaking(steps: Iterable[SourceStep]) -> None:
    """Raise CommandError if publishing would lose facts."""
    lines = [f"{s.id}: {name} {what}" for s in steps for name, what in s.breaking.items()]
    if lines:
        raise CommandError(
            "Everything that reads these facts would lose them, so nothing was written:",
            REFUSED,
            lines,
            hint="--force publishes anyway, under a new major version.",
        )


def run_source_step(step: SourceStep, client: Client, *, drafts: bool, force: bool) -> str:
    """Execute a step; returns a description of what was done."""
    if step.document is None:
        client.delete_data_source(step.id)
        return "deleted"
    if step.action != "publish":
        written = client.put_data_source(step.document)
        if drafts:
            return f"written as a draft{_problem_note(written)}"
    published = client.publish_data_source(step.id, force=force)
    return f"published, version {published.version}{_problem_note(published)}"


def _source_step(
    one: SourceFile, existing: DataSource | None, *, drafts: bool
) -> SourceStep | None:
    """Plan the step for a definition; None if nothing differs."""
    document, there = one.definition.document, StoredDocuments()
    if existing is not None:
        there = _stored_documents(existing)
    found = compare_document(document, there, drafts=drafts)
    if found is None:
        return None
    breaking = (
        {} if drafts or there.published is None else describe_lost_facts(there.published, document)
    )
    return SourceStep(found, one.id, one.origin, dict(document), breaking)


def _stored_documents(source: DataSource) -> StoredDocuments:
    known = source.definition
    assert known is not None, "a builtin source is refused before"
    if known.draft is None and known.published is None:
        raise CommandError(
            "This token cannot see how sources are defined.",
            NOT_AUTHORISED,
            hint="It needs the permission tech-insights.data-source.write, or a group of "
            "yours has to own the source.",
        )
    return StoredDocuments(known.draft, known.published)


def _problem_note(source: DataSource) -> str:
    """Format why a source can't be collected, such as a missing connection; may be empty."""
    return f"; it cannot be collected: {source.problem}" if source.problem else ""


def _is_defined(source: DataSource) -> bool:
    """True if the source has a definition; sources that are builtin or from plug-ins don't."""
    return source.definition is not None


def source_skeleton(name: str, type_: SourceType, owner: str | None = None) -> str:
    """Write a template of a definition; raises InputError for an invalid id or owner."""
    text = definition.write_starter(
        name, type_, None if owner is None else _owner_reference(owner, type_)
    )
    head = _HEAD.replace("<test>", "" if type_ == "push" else _TEST)
    return head.replace("<file>", f"{name}.yaml") + text


def integration_scaffold(name: str) -> dict[str, str]:
    """Make the files, by path, of an integration package for a vendor with this id.

    Raises InputError for an invalid id, or the id of an included vendor.
    """
    if not _NAME.fullmatch(name):
        raise InputError("The id of an integration has only lower-case letters and digits.")
    if name in VENDORS:
        raise InputError(f"{name} is an integration that is included in Factbook.")
    files = dict[str, str]()
    for path, template in _FILES.items():
        text = (_TEMPLATES / f"{template}.txt").read_text("utf-8")
        text = text.replace("VARIABLE", name.upper()).replace("NAME", name)
        files[path.replace("NAME", name)] = text.replace("TITLE", name.capitalize())
    return files


def _owner_reference(owner: str, type_: SourceType) -> str:
    """Parse the reference of a group that may own a source of this type."""
    if type_ not in OWNED_TYPES:
        *some, last = (each for each in SOURCE_TYPES if each in OWNED_TYPES)
        raise InputError(
            f"--owner is not for a source of type {type_}: only {', '.join(some)} and {last} "
            "have one."
        )
    try:
        found = ref.parse_ref(ref.canonicalize_target(owner, kind="group"))
    except InputError as error:
        raise InputError(f"--owner: {error.message}") from error
    if found.kind != "group":
        raise InputError(f"--owner has to be a group, such as team-shop: {found} is not one.")
    return str(found)


class Recording(msgspec.Struct, rename="camel", kw_only=True):
    """A recorded trial."""

    source: str
    entity: dict[str, Any]
    request: dict[str, Any] | None
    answer: TriedAnswer
    reasons: dict[str, str]


def try_source(
    one: SourceFile,
    ref: EntityRef,
    folder: str | None,
    connect: Callable[[], AbstractContextManager[Client]],
    *,
    renew: bool,
) -> Tried:
    """Try a definition on an entity.

    With a folder, replays the recording there without a server, or records one. Raises InputError
    for an unusable recording, or an answer that can't be recorded.
    """
    definition = one.definition
    if folder is None:
        with connect() as client:
            return _try_on_server(client, definition, ref)
    name = ".".join(quote(part, safe="") for part in (ref.kind, ref.namespace, ref.name))
    file = Path(folder, one.id, f"{name}{definitions.RECORDING}")
    recording = None if renew else load_recording(file)
    if recording is not None:
        print_note(f"Replayed: {file}")
        return _replay_recording(recording, definition)
    with connect() as client:
        entity = client.entity(str(ref))
        found = _try_on_server(client, definition, ref)
    _save_recording(file, definition, entity, found)
    print_note(f"Recorded: {file}. Look at it before you commit it.")
    return found


def print_source_trial(one: SourceFile, ref: EntityRef, trial: Tried) -> None:
    """Print the request, the start of the answer, and the facts."""
    say(f"{one.id} about {ref}")
    if trial.request is not None:
        request = trial.request
        line = " ".join(str(request[key]) for key in ("method", "path") if key in request)
        if (body := request.get("body")) is not None:
            line += f" {msgspec.json.encode(body).decode()}"
        say(f"Request: {line}")
    if trial.answer is not None:
        _print_answer_head(trial.answer)
    for reason in filter(None, [trial.reasons.get("")]):
        say(f"No facts: {reason}")
    print_table(["Fact", "Type", "Value", "Why none"], _trial_rows(one.definition, trial))


def source_trial_json(one: SourceFile, ref: EntityRef, trial: Tried) -> dict[str, Any]:
    """Convert the trial to the form of `--json`."""
    return {"id": one.id, "entity": str(ref), **msgspec.to_builtins(trial)}


def has_trial_failed(one: SourceFile, trial: Tried) -> bool:
    """True if the trial found no fact, or a fact lacks a value that it should have."""
    if one.definition.type == "push":
        return False
    words = {schema.reason_word(reason) for reason in trial.reasons.values()}
    return not trial.facts or bool(words - _FINE)


def _try_on_server(client: Client, definition: CustomSourceDefinition, ref: EntityRef) -> Tried:
    found = client.test_data_source(definition.document, str(ref))
    return msgspec.structs.replace(found, request=_without_headers(found.request))


def _print_answer_head(answer: TriedAnswer) -> None:
    about = [str(part) for part in (answer.status, answer.content_type) if part is not None]
    say(" ".join(["Answer:", *about, f"({len(answer.body):,} characters)"]))
    lines = answer.body.splitlines()
    for line in lines[:_LINES]:
        say(f"  {line[:_LINE]}{'…' if len(line) > _LINE else ''}")
    if len(lines) > _LINES or answer.truncated:
        say("  …")


def _trial_rows(definition: CustomSourceDefinition, trial: Tried) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for fact in definition.source.schema:
        known = fact.name in trial.facts
        value = msgspec.json.encode(trial.facts[fact.name]).decode() if known else None
        rows.append((fact.name, fact.type, value, trial.reasons.get(fact.name)))
    return rows


def load_recording(file: Path) -> Recording | None:
    """Load a recording; None if the file is missing. Raises InputError for an invalid one."""
    try:
        return msgspec.json.decode(definitions.file_content(str(file)), type=Recording)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{file} is not a recording; --record makes a new one.") from None


def _save_recording(
    file: Path, definition: CustomSourceDefinition, entity: Mapping[str, Any], tried: Tried
) -> None:
    """Record a trial; raises InputError if it couldn't be replayed."""
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


def _replay_recording(recording: Recording, definition: CustomSourceDefinition) -> Tried:
    """Repeat a trial with the current definition and the recorded answer.

    Raises InputError if the definition now makes another request.
    """
    request = _render_request(definition, recording.entity)
    if isinstance(request, Missing):
        return Tried(None, None, {}, {"": request.reason})
    if request != recording.request:
        raise InputError(
            f"{definition.source.id} sends a different request from the recorded one; "
            "--record records it again."
        )
    found = _collect_recording(recording, definition)
    if found is None:
        return Tried(request, recording.answer, {}, recording.reasons)
    checked = definition.source.check(found.values)
    missing = {**checked.reasons, **found.reasons}
    return Tried(request, recording.answer, checked.stored, missing)


def _render_request(
    definition: CustomSourceDefinition, entity: Mapping[str, Any]
) -> dict[str, Any] | Missing | None:
    """Render the current definition's request in the recorded form."""
    if definition.request is not None:
        rendered = sources.render_request(definition.request, entity)
        if isinstance(rendered, Missing):
            return rendered
        return _without_headers(msgspec.to_builtins(rendered))
    if definition.path is not None:
        path = sources.repository_path(definition, entity)
        return path if isinstance(path, Missing) else {"path": path}
    return None


def _collect_recording(
    recording: Recording, definition: CustomSourceDefinition
) -> Collected | None:
    """Extract the definition's result from the answer; None if the answer is an error."""
    status, body = recording.answer.status, recording.answer.body.encode()
    if status is not None and not 200 <= status < 300:
        return None
    return sources.facts_of_body(definition, body)


def _without_headers(request: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Remove the headers from a request, as they may contain a misplaced secret."""
    if request is None:
        return None
    return {name: value for name, value in request.items() if name != "headers"}
