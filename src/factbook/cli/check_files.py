"""Checks, scorecards and exemptions as code: files, conversions, tests and plans."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple

import msgspec

from factbook import clock
from factbook.catalog import ref
from factbook.checks import document_readers, takeover
from factbook.checks.definitions import exemption_store, scorecard
from factbook.checks.definitions.exemption_store import ExemptionRequest
from factbook.checks.document_readers import DefinitionDocument, Kind
from factbook.checks.rules import check_definition, check_trial, language
from factbook.checks.rules.check_definition import Check, parse_check
from factbook.checks.rules.check_trial import CheckTrial
from factbook.checks.state import name_state
from factbook.checks.takeover import REFUSED, Sources, TakenOver
from factbook.cli import definitions
from factbook.cli.command_parts import format_count, say
from factbook.cli.definitions import (
    DELETION,
    Action,
    DefinitionChange,
    FieldDifference,
    PlanStep,
    StoredDocuments,
    compare_document,
    file_content,
    write_new_file,
)
from factbook.cli.documents import STDIN, parse_entity_file
from factbook.client import ApiError, Client
from factbook.client.answers import accept_nothing
from factbook.client.calls import Call, get_call, segment, send_call
from factbook.clock import iso
from factbook.datasources.custom import yaml_text
from factbook.errors import InputError, InvalidItemsError, problem
from factbook.schemas.checks import Exemptions, ShownExemption
from factbook.schemas.results import Preview

DefinitionKind = Literal["check", "scorecard"]
StoredContent = dict[str, Any]

_DEFINITIONS_PATH: Final = "/api/tech-insights/v1"
_KINDS: Final[tuple[DefinitionKind, ...]] = ("check", "scorecard")
# Members that only the service sets.
_SERVICE_SET: Final = frozenset(
    {
        *(
            "version",
            "draft",
            "tag",
            "sentence",
            "createdAt",
            "createdBy",
            "updatedAt",
            "updatedBy",
        ),
        *("publishedAt", "publishedBy", "publication", "unpublished"),
    }
)

_EXEMPTIONS_PATH: Final = "/api/tech-insights/v1/exemptions"
_OPEN: Final = ("requested", "approved")


class ReadDocument(NamedTuple):
    """A valid document and its place.

    `check` is None unless the document is a check.
    """

    kind: Kind
    document: dict[str, Any]
    origin: str
    check: Check | None

    @property
    def id(self) -> str:
        """Id of the check or scorecard; for an exemption, its subject."""
        if self.kind == "exemption":
            about = self.document.get("check") or self.document.get("scorecard")
            return f"{about} of {ref.parse_ref(self.document['entity'])}"
        return str(self.document["id"])

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.kind}: is", self.id


def read_check_files(places: Sequence[str]) -> list[ReadDocument]:
    """Read the documents in files and directories; raises as `definitions.read_definitions`."""
    return definitions.read_definitions(
        places, "a check, scorecard or exemption", _parse_check_file
    )


def _parse_check_file(document: dict[str, Any], origin: str) -> ReadDocument:
    found = document_readers.parse_file_document(document)
    return ReadDocument(
        found.kind, found.document, origin, _parse_if_check(found.kind, found.document)
    )


def _parse_if_check(kind: Kind, document: dict[str, Any]) -> Check | None:
    """Parse a document, and return it if it is a check; raises InvalidItemsError."""
    match kind:
        case "check":
            return parse_check(document)
        case "scorecard":
            scorecard.parse_scorecard(document)
        case "exemption":
            # An expired exemption isn't a mistake; its file can be deleted.
            if exemption_store.parse_exemption_request(document, 0).until is None:
                raise InvalidItemsError([problem("until", "is required in a file")])
    return None


@dataclass(frozen=True)
class DefinitionStep(PlanStep):
    """Change of a check or scorecard; `changed` counts the results that would change, if known.

    `tag` is the tag of the server's definition when planned; None if the server had none.
    """

    kind: DefinitionKind = "check"
    tag: str | None = None
    changed: int | None = None

    @property
    def name(self) -> str:
        return f"{self.kind} {self.id}"

    def lines(self) -> Iterator[tuple[str, str | None]]:
        if self.action != "create":
            yield from super().lines()
        if self.changed is not None:
            noun = "result" if self.changed == 1 else "results"
            yield f"{self.changed:,} {noun} would change", None

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **super().as_json(), "changedResults": self.changed}


class StoredDocument(NamedTuple):
    """A definition on the server, as shown, and its documents."""

    kind: DefinitionKind
    document: StoredContent
    stored: StoredDocuments
    tag: str | None


def plan_definitions(
    client: Client, read: Sequence[ReadDocument], *, drafts: bool, prune: bool
) -> list[DefinitionStep]:
    """Plan the steps that make the server match the files: checks in order, then deletions."""
    there = {(one.kind, str(one.document["id"])): one for one in list_stored_definitions(client)}
    steps = list[DefinitionStep]()
    for file in _order_documents(read):
        kind: DefinitionKind = "check" if file.kind == "check" else "scorecard"
        before = there.get((kind, file.id))
        stored, tag = (before.stored, before.tag) if before else (StoredDocuments(), None)
        change = compare_document(file.document, stored, drafts=drafts)
        if change is not None:
            step = DefinitionStep(change, file.id, file.origin, file.document, kind, tag)
            steps.append(
                step if drafts else replace(step, changed=_count_changed_results(client, step))
            )
    if prune:
        in_files = {(file.kind, file.id) for file in read}
        gone = [key for key in there if key not in in_files]
        # A check can't be deleted before the scorecards that use it.
        for kind, id_ in sorted(gone, key=lambda key: key[0], reverse=True):
            steps.append(DefinitionStep(DELETION, id_, kind=kind, tag=there[kind, id_].tag))
    return steps


def list_stored_definitions(client: Client) -> Iterator[StoredDocument]:
    """Iterate over the checks and scorecards on the server."""
    for kind in _KINDS:
        cursor: str | None = None
        while True:
            page = client.send(
                get_call(f"{_DEFINITIONS_PATH}/{kind}s", dict[str, Any], cursor=cursor)
            )
            for shown in page[f"{kind}s"]:
                document = {
                    name: value for name, value in shown.items() if name not in _SERVICE_SET
                }
                published = None if shown["draft"] else document
                draft = document if shown["draft"] else shown.get("unpublished")
                yield StoredDocument(
                    kind, document, StoredDocuments(draft, published), shown.get("tag")
                )
            cursor = page.get("nextCursor")
            if not cursor:
                break


def run_definition_step(step: DefinitionStep, client: Client, *, drafts: bool) -> str:
    """Execute a step; returns a description of what was done.

    The server refuses to overwrite changes made since the plan, which the user hasn't seen.
    """
    path = f"{_DEFINITIONS_PATH}/{step.kind}s/{segment(step.id)}"
    seen = {} if step.tag is None else {"if-match": f'"{step.tag}"'}
    if step.document is None:
        client.send(Call(method="DELETE", path=path, read=accept_nothing, headers=seen))
        return "deleted"
    call = send_call("PUT", path, dict[str, Any], step.document)
    call.headers.update(seen)
    if drafts:
        client.send(call)
        return "written as a draft"
    call.params.append(("publish", "true"))
    written = client.send(call)
    if pending := written.get("publication"):
        return f"published, version {pending['version']}, which is being evaluated"
    return f"published, version {written['version']}"


def _order_documents(read: Sequence[ReadDocument]) -> list[ReadDocument]:
    """Order checks after the checks they read, then scorecards; the server refuses cycles."""
    checks = {one.id: one for one in read if one.check is not None}
    reads = {
        id_: check_definition.list_checks_read(one.check)
        for id_, one in checks.items()
        if one.check
    }
    ordered = [checks[id_] for id_ in check_definition.order_by_reads(reads)]
    return [*ordered, *(one for one in read if one.kind == "scorecard")]


def _count_changed_results(client: Client, step: DefinitionStep) -> int | None:
    """Count the results that the step would change; None if the server can't say."""
    if step.kind != "check" or step.document is None:
        return None
    body = {"definition": step.document, "limit": 0}
    try:
        return client.send(
            send_call("POST", f"{_DEFINITIONS_PATH}/checks/preview", Preview, body)
        ).changed
    except ApiError:
        return None


class ExemptionOptions(NamedTuple):
    """Optional steps for exemptions: approving and revoking."""

    approve: bool = False
    revoke: bool = False


class ExemptionKey(NamedTuple):
    """An entity and the check or scorecard it is exempt from."""

    check: str | None
    scorecard: str | None
    entity: str

    def __str__(self) -> str:
        return f"{self.check or self.scorecard} of {self.entity}"


@dataclass(frozen=True)
class ExemptionChange(PlanStep):
    """Change of one exemption; `there` is the exemption on the server, if any."""

    # 403 is about one exemption: its entity and check determine who may request and decide.
    own_statuses: ClassVar[frozenset[int]] = PlanStep.own_statuses | {403}

    there: ShownExemption | None = None

    @property
    def name(self) -> str:
        return f"exemption {self.id}"

    def as_json(self) -> dict[str, Any]:
        return {"kind": "exemption", **super().as_json()}


class ExemptionPlan(NamedTuple):
    """Steps for exemptions, and notes on files that need no step."""

    steps: list[ExemptionChange]
    notes: list[str]


def plan_exemptions(
    client: Client, read: Sequence[ReadDocument], options: ExemptionOptions
) -> ExemptionPlan:
    """Plan the steps for the exemptions in files; sends no request if there are none."""
    files = [file for file in read if file.kind == "exemption"]
    plan = ExemptionPlan([], [])
    if not (files or options.revoke):
        return plan
    there = {_exemption_key(exemption): exemption for exemption in list_open_exemptions(client)}
    now = clock.now()
    in_files = set()
    for file in files:
        request = exemption_store.parse_exemption_request(file.document, 0)
        key = ExemptionKey(request.check, request.scorecard, request.entity)
        in_files.add(key)
        if request.until is not None and request.until <= now:
            plan.notes.append(f"exemption {key} is over; {file.origin} can go.")
            continue
        if key in there:
            _compare_exemption(plan, file, key, request, there[key], options)
            continue
        page = client.send(get_call(_EXEMPTIONS_PATH, Exemptions, limit=1, **key._asdict()))
        newest = page.exemptions[0] if page.exemptions else None
        rejected = newest if newest and newest.state in ("denied", "revoked") else None
        if rejected and not _exemption_differences(rejected, request):
            plan.notes.append(
                f"exemption {key} was {rejected.state}; a changed file makes a new request."
            )
        else:
            plan.steps.append(_exemption_step("request", key, file))
    if options.revoke:
        gone = sorted((key for key in there if key not in in_files), key=str)
        plan.steps.extend(_exemption_step("revoke", key, None, there[key]) for key in gone)
    return plan


def list_open_exemptions(client: Client) -> Iterator[ShownExemption]:
    """Iterate over the exemptions on the server that are requested or in force."""
    for state in _OPEN:
        yield from _list_exemptions(client, state=state)


def exemption_document(one: ShownExemption) -> dict[str, Any]:
    """Make the document of a file that requests an exemption."""
    members = {
        **_exemption_key(one)._asdict(),
        "reason": one.reason,
        "link": one.link,
        "from": one.from_,
        "until": one.until,
    }
    return {name: value for name, value in members.items() if value is not None}


def run_exemption_step(step: ExemptionChange, client: Client) -> str:
    """Execute a step; returns a description of what was done."""
    decision = "deny" if step.there and step.there.state == "requested" else "revoke"
    if step.action == "approve":
        _decide_exemption(client, step, "approve")
        return "approved"
    if step.action in ("replace", "revoke"):
        _decide_exemption(client, step, decision)
    if step.action == "revoke":
        return "denied" if decision == "deny" else "revoked"
    client.send(send_call("POST", _EXEMPTIONS_PATH, ShownExemption, step.document))
    return "asked for; somebody else approves it"


def _compare_exemption(
    found: ExemptionPlan,
    one: ReadDocument,
    key: ExemptionKey,
    wanted: ExemptionRequest,
    there: ShownExemption,
    options: ExemptionOptions,
) -> None:
    """Add the step or note for a file whose exemption is open on the server."""
    differences = _exemption_differences(there, wanted)
    if differences and options.revoke:
        found.steps.append(_exemption_step("replace", key, one, there, differences))
    elif differences:
        names = ", ".join(each.path for each in differences)
        found.notes.append(
            f"exemption {key} has another {names} than {one.origin}; --revoke requests it again."
        )
    elif there.state == "requested" and options.approve:
        found.steps.append(_exemption_step("approve", key, one, there))
    elif there.state == "requested":
        found.notes.append(f"exemption {key} waits for someone else to approve it.")


def _exemption_step(
    action: Action,
    key: ExemptionKey,
    one: ReadDocument | None,
    there: ShownExemption | None = None,
    differences: Sequence[FieldDifference] = (),
) -> ExemptionChange:
    change = DefinitionChange(action, list(differences))
    if one is None:
        return ExemptionChange(change, str(key), there=there)
    return ExemptionChange(change, str(key), one.origin, one.document, there)


def _decide_exemption(client: Client, step: ExemptionChange, decision: str) -> None:
    assert step.there is not None
    path = f"{_EXEMPTIONS_PATH}/{segment(step.there.id)}/{decision}"
    client.send(send_call("POST", path, ShownExemption, {"comment": "By files."}))


def _list_exemptions(client: Client, **wanted: Any) -> Iterator[ShownExemption]:
    cursor: str | None = None
    while True:
        page = client.send(get_call(_EXEMPTIONS_PATH, Exemptions, cursor=cursor, **wanted))
        yield from page.exemptions
        cursor = page.next_cursor
        if cursor is None:
            return


def _exemption_key(one: ShownExemption) -> ExemptionKey:
    return ExemptionKey(one.check, one.scorecard, one.entity)


def _exemption_differences(
    there: ShownExemption, wanted: ExemptionRequest
) -> list[FieldDifference]:
    """List the members that differ; a file without a start keeps the request's start."""
    until = None if wanted.until is None else iso(wanted.until)
    start = iso(wanted.starts_at) if wanted.starts_at else there.from_
    pairs = {
        "reason": (there.reason, wanted.reason),
        "link": (there.link, wanted.link),
        "from": (there.from_, start),
        "until": (there.until, until),
    }
    return [
        FieldDifference(
            name,
            *(None if value is None else msgspec.json.encode(value).decode() for value in values),
        )
        for name, values in pairs.items()
        if values[0] != values[1]
    ]


class FilePlan(NamedTuple):
    """Steps for definitions and exemptions, and notes on files that need no step."""

    steps: list[PlanStep]
    notes: list[str]


def plan_check_files(
    client: Client,
    read: Sequence[ReadDocument],
    options: ExemptionOptions,
    *,
    drafts: bool,
    prune: bool,
) -> FilePlan:
    """Plan the steps that make the server match the files; exemptions may name new checks."""
    definitions = [one for one in read if one.kind != "exemption"]
    steps = plan_definitions(client, definitions, drafts=drafts, prune=prune)
    exemptions = plan_exemptions(client, read, options)
    return FilePlan([*steps, *exemptions.steps], exemptions.notes)


def run_check_step(step: PlanStep, client: Client, *, drafts: bool) -> str:
    """Execute a step, and say what was done."""
    if isinstance(step, ExemptionChange):
        return run_exemption_step(step, client)
    assert isinstance(step, DefinitionStep)
    return run_definition_step(step, client, drafts=drafts)


_LONGEST_NAME: Final = 150

_READERS: Final[Mapping[str, Callable[[object, Sources], TakenOver]]] = {
    "backstage": takeover.take_over_backstage,
    "rhdh": takeover.take_over_rhdh,
    "roadie": takeover.take_over_roadie,
}


def check_skeleton(name: str) -> str:
    """Write a check to start from, with comments on how to edit it, and passing tests."""

    def refuse(path: str, message: str) -> None:
        raise InputError(f'"{name}" {message}.')

    document_readers.read_identifier(name, "", refuse)
    title = name.replace("-", " ").replace("_", " ").replace(".", " ").strip()
    return _SKELETON.format(name=name, title=f"{title[:1].upper()}{title[1:]}")


_SKELETON: Final = """\
check: {name}
title: {title}
description: >-
  What is asked of an entity, and what it is good for.
# Who answers for the check:
# owner: group:default/platform

# The entities that it is about, by paths of the catalog; without it, all of them.
appliesTo: {{kind: component}}

# `all`, `any` or `not` over comparisons of facts. A fact that is missing neither passes nor fails.
rule:
  all:
    - {{source: entity-ownership, fact: hasGroupOwner, operator: equal, value: true}}
    - {{source: entity-metadata, fact: hasDescription, operator: equal, value: true}}

# With values of the entity, {{{{ metadata.name }}}}, and of facts, {{{{ facts.SOURCE['FACT'] }}}}.
messages:
  fail: "{{{{ metadata.name }}}} has no group as its owner, or no description."
# fix: {{link: "https://wiki.example.com/owners#{{{{ metadata.name }}}}"}}

# `factbook checks test {name}.yaml` runs them: at least a pass, a fail and an unknown.
tests:
  - facts:
      entity-ownership: {{hasGroupOwner: true}}
      entity-metadata: {{hasDescription: true}}
    expect: pass
  - facts:
      entity-ownership: {{hasGroupOwner: false}}
    expect: fail
  - facts: {{}}
    expect: unknown
"""


def convert_file(file: str, peer: str, sources: Sequence[str]) -> TakenOver:
    """Convert the checks and scorecards in a file; raises InputError if there are none."""
    ids = dict[str, str]()
    for pair in sources:
        theirs, mark, ours = pair.partition("=")
        if not mark or not theirs or not ours:
            raise InputError(f"--source has to be THEIRS=OURS, not {pair}.")
        ids[theirs] = ours
    name = "standard input" if file == STDIN else file
    try:
        data = file_content(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    items = [
        msgspec.json.decode(document.entity)
        for document in parse_entity_file(data, name, f"of {peer}") or []
    ]
    try:
        return _READERS[peer](items[0] if len(items) == 1 else items, ids)
    except RecursionError:
        raise InputError(f"{name} is nested too deeply.") from None


def write_converted(
    found: Sequence[DefinitionDocument], folder: Path, *, quiet: bool = False
) -> None:
    """Write each document to a new file; raises InputError, writing none, if a file exists."""
    written: dict[Path, dict[str, Any]] = {}
    taken: set[str] = set()
    for kind, document in found:
        if kind == "exemption":
            entity = str(document["entity"]).rpartition("/")[2]
            name = f"{document.get('check') or document['scorecard']}-{entity}"[:_LONGEST_NAME]
        else:
            name = str(document["id"])
        file = folder / f"{kind}s" / f"{_distinct_name(name, kind, taken)}.yaml"
        written[file] = document_readers.make_file_document(kind, document)
    for file in written:
        if file.exists():
            raise InputError(f"{file} exists already; nothing was written.")
    for file, document in written.items():
        write_new_file(file, yaml_text.write_yaml(document), quiet=quiet)


def _distinct_name(name: str, kind: Kind, taken: set[str]) -> str:
    """Append a number if the name is taken on a case-insensitive file system."""
    found, number = name, 1
    while f"{kind} {found}".casefold() in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(f"{kind} {found}".casefold())
    return found


def list_refused_items(found: TakenOver) -> list[str]:
    """List the items that could not be converted."""
    items = (one.item for one in found.remarks if one.remark.kind == REFUSED)
    return list(dict.fromkeys(items))


def print_conversion(found: TakenOver) -> None:
    """Print the counts of written documents, and every remark."""
    ids = {kind: list(found.taken(kind)) for kind in document_readers.KINDS}
    say(
        "; ".join(format_count(ids[kind], kind) for kind in document_readers.KINDS if ids[kind])
        or "nothing"
    )
    for one in found.remarks:
        path = f" {one.remark.path}" if one.remark.path else ""
        say(f"{one.remark.kind}: {one.item}:{path} {one.remark.message}")


def conversion_json(found: TakenOver) -> dict[str, Any]:
    """Convert the written documents, and every remark, to JSON."""
    return {
        "written": [{"kind": kind, "id": document["id"]} for kind, document in found.documents],
        "remarks": [{"item": item, **remark._asdict()} for item, remark in found.remarks],
    }


class TriedCheck(NamedTuple):
    """A check, the results of its tests, and untested parts by path."""

    check: Check
    trials: list[CheckTrial]
    gaps: list[tuple[str, str]]

    @property
    def failed(self) -> bool:
        """True if a test has an unexpected result, or a part of the check is untested."""
        return bool(self.gaps) or not all(one.passed for one in self.trials)


def run_check_tests(check: Check, now: int) -> TriedCheck:
    """Run a check's own tests."""
    return TriedCheck(
        check, check_trial.try_check(check, now), list(check_trial.list_test_gaps(check))
    )


def print_check_tests(found: TriedCheck) -> None:
    """Print the test results: one line if all passed, otherwise the details."""
    if not found.failed:
        say(f"{found.check.id}: {len(found.trials)} tests passed")
        return
    say(f"{found.check.id}: {language.describe_rule(found.check.rule)}")
    for path, message in found.gaps:
        say(f"  {path} {message}")
    for position, one in enumerate(found.trials):
        if not one.passed:
            _print_failed_test(position, one)


def check_tests_json(found: TriedCheck) -> dict[str, Any]:
    """Convert the test results to JSON."""
    return {
        "check": found.check.id,
        "passed": not found.failed,
        "problems": [{"path": path, "message": message} for path, message in found.gaps],
        "tests": [
            {"title": one.test.title, "expect": one.test.expect, "state": one.state}
            for one in found.trials
        ],
    }


def _print_failed_test(position: int, one: CheckTrial) -> None:
    title = f" ({one.test.title})" if one.test.title else ""
    say(f"  tests[{position}]{title} expects {one.test.expect}, and is {one.state}:")
    if one.explanation is None:
        say("    appliesTo does not match the entity")
        return
    for evidence in one.explanation.because:
        value = msgspec.json.encode(evidence.value).decode()
        saw = f"unknown, {evidence.reason}" if evidence.reason else f"it is {value}"
        rule = language.describe_rule(evidence.leaf).removesuffix(".")
        say(f"    {name_state(evidence.state)}: {rule}; {saw}")
