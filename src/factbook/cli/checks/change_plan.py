"""Plan of what makes the checks and scorecards of a server match the files, and its execution."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal, NamedTuple

from factbook.checks.validation import dependencies
from factbook.cli.checks.files import ReadDocument
from factbook.cli.output import say_coloured
from factbook.cli.sources.change_plan import FieldDifference, differences
from factbook.client import ApiError, Client
from factbook.client.calls import Call, get, segment, send
from factbook.client.responses import nothing
from factbook.definitions.documents import same
from factbook.schemas.previews import Preview

Kind = Literal["check", "scorecard"]
Action = Literal["create", "change", "publish", "delete"]
Document = dict[str, Any]

_PATH: Final = "/api/tech-insights/v1"
_KINDS: Final[tuple[Kind, ...]] = ("check", "scorecard")
# Members that the service sets.
_SERVICE_SET: Final = frozenset(
    {
        *("version", "draft", "sentence", "createdAt", "createdBy", "updatedAt", "updatedBy"),
        *("publishedAt", "publishedBy", "publication", "unpublished"),
    }
)
# Statuses that are about one document; after any other no document would fare better.
_ITS_OWN: Final = {400, 404, 409, 413}
_COLOURS: Final[Mapping[Action, str]] = {
    "create": "green",
    "change": "yellow",
    "publish": "yellow",
    "delete": "red",
}
_WORDS: Final[Mapping[Action, str]] = {
    "create": "is new",
    "change": "differs",
    "publish": "is a draft, to be published",
    "delete": "is in no file, to be deleted with its results",
}


class DefinitionStep(NamedTuple):
    """Change of one check or scorecard; `changed` are the results that would be others, if known.

    `document` is None for one that is deleted.
    """

    action: Action
    kind: Kind
    id: str
    origin: str | None
    document: Document | None
    differences: list[FieldDifference]
    changed: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The step in the form of `--json`."""
        return {
            "kind": self.kind,
            "id": self.id,
            "action": self.action,
            "differences": [each._asdict() for each in self.differences],
            "changedResults": self.changed,
        }


class StoredDocument(NamedTuple):
    """A document of the server: what is in effect, and its draft if there is one."""

    kind: Kind
    document: Document
    draft: Document | None


def plan(
    client: Client, read: Sequence[ReadDocument], *, drafts: bool, prune: bool
) -> list[DefinitionStep]:
    """Steps from the server to the files, each check after those that it reads, then deletions."""
    there = {(one.kind, str(one.document["id"])): one for one in every(client)}
    steps = list[DefinitionStep]()
    for one in _in_order(read):
        step = _step(one, there.get((_kind(one), one.id)), drafts=drafts)
        if step is not None:
            steps.append(step if drafts else step._replace(changed=_changed(client, step)))
    if prune:
        kept = {(one.kind, one.id) for one in read}
        gone = [key for key in there if key not in kept]
        # A check that a scorecard names stays until the scorecard is gone.
        steps += [
            DefinitionStep("delete", kind, id_, None, None, [])
            for kind, id_ in sorted(gone, key=lambda key: key[0], reverse=True)
        ]
    return steps


def every(client: Client) -> Iterator[StoredDocument]:
    """Every check and every scorecard of the server."""
    for kind in _KINDS:
        cursor: str | None = None
        while True:
            page = client.send(get(f"{_PATH}/{kind}s", dict[str, Any], cursor=cursor))
            for shown in page[f"{kind}s"]:
                yield _stored(kind, shown)
            cursor = page.get("nextCursor")
            if not cursor:
                break


def show(steps: Iterable[DefinitionStep]) -> None:
    """Print the steps, field by field, with the results that would change."""
    for step in steps:
        where = f", {step.origin}" if step.origin else ""
        words = f"{step.kind} {step.id}: {_WORDS[step.action]}{where}"
        say_coloured(words, _COLOURS[step.action])
        for difference in step.differences if step.action != "create" else ():
            say_coloured(f"  {difference}", None)
        if step.changed is not None:
            noun = "result" if step.changed == 1 else "results"
            say_coloured(f"  {step.changed:,} {noun} would change", None)


def summary(steps: Sequence[DefinitionStep]) -> str:
    """Counts of the steps by action, in a line."""
    actions = [step.action for step in steps]
    words = {action: f"{actions.count(action)} to {action}" for action in _COLOURS}
    return ", ".join(words[one] for one in _COLOURS if one in actions) or "Nothing to do."


def apply(
    client: Client, steps: Sequence[DefinitionStep], *, drafts: bool, tell: Callable[[str], None]
) -> list[str]:
    """Execute every step and report each; returns the refusals, which do not stop the others.

    Running it again continues after the last success.
    """
    refused = []
    for step in steps:
        try:
            tell(_done(client, step, drafts=drafts))
        except ApiError as error:
            if error.status not in _ITS_OWN:
                raise
            problems = error.details.get("problems") or []
            lines = [f"{problem['path']}: {problem['message']}" for problem in problems]
            refused += [f"{step.kind} {step.id}: {line}" for line in lines or [error.message]]
    return refused


def _stored(kind: Kind, shown: Document) -> StoredDocument:
    """A document as the server shows it, without what the service sets."""
    document = {name: value for name, value in shown.items() if name not in _SERVICE_SET}
    if shown["draft"]:
        return StoredDocument(kind, document, document)
    return StoredDocument(kind, document, shown.get("unpublished"))


def _step(
    one: ReadDocument, existing: StoredDocument | None, *, drafts: bool
) -> DefinitionStep | None:
    """Step for a document; None if nothing differs."""
    kind, document = _kind(one), one.document
    if existing is None:
        found = differences(None, document)
        return DefinitionStep("create", kind, one.id, one.origin, document, found)
    pending = existing.document if existing.draft is None else existing.draft
    if same(document, pending) and (drafts or existing.draft is None):
        return None
    action: Action = "publish" if same(document, pending) else "change"
    before = pending if drafts or same(document, existing.document) else existing.document
    found = differences(before, document)
    return DefinitionStep(action, kind, one.id, one.origin, document, found)


def _kind(one: ReadDocument) -> Kind:
    return "check" if one.kind == "check" else "scorecard"


def _in_order(read: Sequence[ReadDocument]) -> list[ReadDocument]:
    """Checks, each after those that it reads, then scorecards; the server refuses a cycle."""
    checks = {one.id: one for one in read if one.check is not None}
    reads = {
        id_: dependencies(one.check) & checks.keys() for id_, one in checks.items() if one.check
    }
    try:
        ordered = [checks[id_] for id_ in TopologicalSorter(reads).static_order()]
    except CycleError:
        ordered = list(checks.values())
    return [*ordered, *(one for one in read if one.kind == "scorecard")]


def _changed(client: Client, step: DefinitionStep) -> int | None:
    """The results that the step would change; None if the server cannot tell."""
    if step.kind != "check" or step.document is None:
        return None
    body = {"definition": step.document, "limit": 0}
    try:
        return client.send(send("POST", f"{_PATH}/checks/preview", Preview, body)).changed
    except ApiError:
        return None


def _done(client: Client, step: DefinitionStep, *, drafts: bool) -> str:
    path = f"{_PATH}/{step.kind}s/{segment(step.id)}"
    if step.document is None:
        client.send(Call(method="DELETE", path=path, read=nothing))
        return f"{step.kind} {step.id}: deleted"
    call = send("PUT", path, dict[str, Any], step.document)
    if drafts:
        client.send(call)
        return f"{step.kind} {step.id}: written as a draft"
    call.params.append(("publish", "true"))
    written = client.send(call)
    if pending := written.get("publication"):
        version = f"{pending['version']}, which is being evaluated"
    else:
        version = written["version"]
    return f"{step.kind} {step.id}: published, version {version}"
