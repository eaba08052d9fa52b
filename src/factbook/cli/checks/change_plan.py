"""Plan of what makes the checks and scorecards of a server match the files, and its execution."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from factbook.checks.rules import check_definition
from factbook.cli.checks.files import ReadDocument
from factbook.cli.definition_plan import DELETION, PlanStep, StoredDocuments, change
from factbook.client import ApiError, Client
from factbook.client.calls import Call, get, segment, send
from factbook.client.responses import nothing
from factbook.schemas.results import Preview

Kind = Literal["check", "scorecard"]
Document = dict[str, Any]

_PATH: Final = "/api/tech-insights/v1"
_KINDS: Final[tuple[Kind, ...]] = ("check", "scorecard")
# Members that the service sets.
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


@dataclass(frozen=True)
class DefinitionStep(PlanStep):
    """Change of a check or scorecard; `changed` are the results that would be others, if known.

    `tag` is that of what the plan compared with, None of what the server does not have.
    """

    kind: Kind = "check"
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
    """A definition of the server: what it shows, and the documents behind it."""

    kind: Kind
    document: Document
    stored: StoredDocuments
    tag: str | None


def plan(
    client: Client, read: Sequence[ReadDocument], *, drafts: bool, prune: bool
) -> list[DefinitionStep]:
    """Steps from the server to the files, each check after those that it reads, then deletions."""
    there = {(one.kind, str(one.document["id"])): one for one in every(client)}
    steps = list[DefinitionStep]()
    for one in _in_order(read):
        kind = _kind(one)
        before = there.get((kind, one.id))
        stored, tag = (before.stored, before.tag) if before else (StoredDocuments(), None)
        found = change(one.document, stored, drafts=drafts)
        if found is not None:
            step = DefinitionStep(found, one.id, one.origin, one.document, kind, tag)
            steps.append(step if drafts else replace(step, changed=_changed(client, step)))
    if prune:
        kept = {(one.kind, one.id) for one in read}
        gone = [key for key in there if key not in kept]
        # A check that a scorecard names stays until the scorecard is gone.
        for kind, id_ in sorted(gone, key=lambda key: key[0], reverse=True):
            steps.append(DefinitionStep(DELETION, id_, kind=kind, tag=there[kind, id_].tag))
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


def run(step: DefinitionStep, client: Client, *, drafts: bool) -> str:
    """Execute a step, and say what was done.

    What somebody has changed since the plan is refused, as nobody has seen what would be lost.
    """
    path = f"{_PATH}/{step.kind}s/{segment(step.id)}"
    seen = {} if step.tag is None else {"if-match": f'"{step.tag}"'}
    if step.document is None:
        client.send(Call(method="DELETE", path=path, read=nothing, headers=seen))
        return "deleted"
    call = send("PUT", path, dict[str, Any], step.document)
    call.headers.update(seen)
    if drafts:
        client.send(call)
        return "written as a draft"
    call.params.append(("publish", "true"))
    written = client.send(call)
    if pending := written.get("publication"):
        return f"published, version {pending['version']}, which is being evaluated"
    return f"published, version {written['version']}"


def _stored(kind: Kind, shown: Document) -> StoredDocument:
    """A document as the server shows it, without what the service sets."""
    document = {name: value for name, value in shown.items() if name not in _SERVICE_SET}
    published = None if shown["draft"] else document
    draft = document if shown["draft"] else shown.get("unpublished")
    return StoredDocument(kind, document, StoredDocuments(draft, published), shown.get("tag"))


def _kind(one: ReadDocument) -> Kind:
    return "check" if one.kind == "check" else "scorecard"


def _in_order(read: Sequence[ReadDocument]) -> list[ReadDocument]:
    """Checks, each after those that it reads, then scorecards; the server refuses a cycle."""
    checks = {one.id: one for one in read if one.check is not None}
    reads = {
        id_: check_definition.list_checks_read(one.check)
        for id_, one in checks.items()
        if one.check
    }
    ordered = [checks[id_] for id_ in check_definition.order_by_reads(reads)]
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
