"""Plan of the changes that make a server's sources match the files, and its execution."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from factbook.cli.connection import count
from factbook.cli.failures import NOT_AUTHORISED, REFUSED, USAGE, CommandError
from factbook.cli.output import say_coloured
from factbook.cli.sources.files import Read
from factbook.client import ApiError, Client, DataSource
from factbook.datasources.source_store import lost
from factbook.definitions.documents import Document, same

Action = Literal["create", "change", "publish", "delete"]
_Path = tuple[str, ...]

_CONFIG: Final = ("handlerDefinition", "config")
_WORDS: Final = "auth|cookie|credential|key|passw|secret|token"
_SECRET: Final = re.compile(_WORDS, re.IGNORECASE)
_SECRET_MEMBER: Final = re.compile(rf'"[^"]*({_WORDS})[^"]*":', re.IGNORECASE)
HIDDEN: Final = "(not shown)"
_LONGEST: Final = 200

# Statuses that are about one source; after any other no source would fare better.
_ITS_OWN: Final = {400, 404, 409, 413}
_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}
_MARKS: Final[dict[Action, str]] = {"create": "+", "change": "~", "publish": "~", "delete": "-"}

_encode = msgspec.json.Encoder(order="deterministic").encode


class FieldDifference(NamedTuple):
    """A field that differs; values are JSON text, None where a document lacks the field."""

    path: str
    before: str | None
    after: str | None

    @property
    def mark(self) -> str:
        """Mark before it in a list: `+`, `-` or `~`."""
        if self.before is None:
            return "+"
        return "-" if self.after is None else "~"

    def __str__(self) -> str:
        shown = [text for text in (self.before, self.after) if text is not None]
        return f"{self.mark} {self.path}: {' → '.join(map(_cut, shown))}"


class PlanStep(NamedTuple):
    """Change of one source; `breaking` describes the lost facts, by their names.

    `document` is None for a source that is deleted.
    """

    action: Action
    id: str
    origin: str | None
    document: Mapping[str, Any] | None
    differences: list[FieldDifference]
    breaking: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The step in the form of `--json`."""
        return {
            "id": self.id,
            "action": self.action,
            "differences": [each._asdict() for each in self.differences],
            "breaking": dict(self.breaking),
        }


def plan(client: Client, read: Sequence[Read], *, drafts: bool, prune: bool) -> list[PlanStep]:
    """Steps from the server to the files: definitions in file order, then deletions.

    Raises Failure for an id of a builtin source, and for a token that may not read definitions.
    """
    ids = [source.id for source in every(client)]
    there = {one.id: client.data_source(one.id) for one in read if one.id in set(ids)}
    if foreign := [one for one in read if one.id in there and not _is_defined(there[one.id])]:
        lines = [f"{one.origin}: id: {one.id} is the id of a builtin source" for one in foreign]
        raise CommandError(f"{count(lines, 'problem')}, nothing was written:", USAGE, lines)
    steps = [_step(one, there.get(one.id), drafts=drafts) for one in read]
    if prune:
        kept = {one.id for one in read}
        steps += [_deletion(client.data_source(id_)) for id_ in ids if id_ not in kept]
    return [step for step in steps if step is not None]


def every(client: Client) -> Iterator[DataSource]:
    """Every data source of the server."""
    page = client.data_sources()
    yield from page.data_sources
    while page.next_cursor:
        page = client.data_sources(cursor=page.next_cursor)
        yield from page.data_sources


def show(steps: Iterable[PlanStep]) -> None:
    """Print the steps, field by field."""
    for step in steps:
        where = f", {step.origin}" if step.origin else ""
        say_coloured(f"{step.id}: {_words(step)}{where}", _COLOURS[_MARKS[step.action]])
        for difference in step.differences:
            say_coloured(f"  {difference}", _COLOURS[difference.mark])
        for name, what in step.breaking.items():
            say_coloured(f"  ! {name} {what}: publishing this takes --force", "red")


def summary(steps: Sequence[PlanStep]) -> str:
    """Counts of the steps by action, in a line."""
    words: dict[Action, str] = {
        "create": "to create",
        "change": "to change",
        "publish": "to publish",
        "delete": "to delete",
    }
    actions = [step.action for step in steps]
    counts = [f"{actions.count(action)} {text}" for action, text in words.items()]
    return ", ".join(one for one in counts if not one.startswith("0 ")) or "Nothing to do."


def check_breaking(steps: Iterable[PlanStep]) -> None:
    """Raise Failure when publishing would remove facts."""
    lines = [f"{s.id}: {name} {what}" for s in steps for name, what in s.breaking.items()]
    if lines:
        raise CommandError(
            "These facts would be lost to everything that reads them, so nothing was written:",
            REFUSED,
            lines,
            hint="--force publishes anyway, under a new major version.",
        )


def apply(
    client: Client,
    steps: Sequence[PlanStep],
    *,
    drafts: bool,
    force: bool,
    tell: Callable[[str], None],
) -> list[str]:
    """Execute every step and report each; returns the refusals, which do not stop the others.

    Running it again continues after the last success.
    """
    refused = []
    for step in steps:
        try:
            tell(_done(client, step, drafts=drafts, force=force))
        except ApiError as error:
            if error.status not in _ITS_OWN:
                raise
            problems = error.details.get("problems") or []
            lines = [f"{problem['path']}: {problem['message']}" for problem in problems]
            refused += [f"{step.id}: {line}" for line in lines or [error.message]]
    return refused


def _step(one: Read, existing: DataSource | None, *, drafts: bool) -> PlanStep | None:
    """Step for a definition; None if nothing differs."""
    document = one.definition.document
    if existing is None:
        return PlanStep("create", one.id, one.origin, document, differences(None, document), {})
    known = existing.definition
    assert known is not None, "a builtin source is refused before"
    if known.draft is None and known.published is None:
        raise CommandError(
            "This token is not shown how sources are defined.",
            NOT_AUTHORISED,
            hint="It needs the permission tech-insights.data-source.write.",
        )
    draft, published = known.draft, known.published
    pending = published if draft is None else draft
    if same(document, pending) and (drafts or draft is None):
        return None
    action: Action = "publish" if same(document, pending) else "change"
    # What is published is compared, unless only its draft differs.
    before = pending if drafts or published is None or same(document, published) else published
    breaking = {} if drafts or published is None else lost(published, document)
    found = differences(before, document)
    return PlanStep(action, one.id, one.origin, document, found, breaking)


def _done(client: Client, step: PlanStep, *, drafts: bool, force: bool) -> str:
    if step.document is None:
        client.delete_data_source(step.id)
        return f"{step.id}: deleted"
    if step.action != "publish":
        written = client.put_data_source(step.document)
        if drafts:
            return f"{step.id}: written as a draft{_problem(written)}"
    published = client.publish_data_source(step.id, force=force)
    return f"{step.id}: published, version {published.version}{_problem(published)}"


def _problem(source: DataSource) -> str:
    """Note on the reason that a source cannot be collected, such as a missing connection."""
    return f"; it cannot be collected: {source.problem}" if source.problem else ""


def _deletion(existing: DataSource) -> PlanStep | None:
    if not _is_defined(existing):
        return None
    return PlanStep("delete", existing.id, None, None, [], {})


def _is_defined(source: DataSource) -> bool:
    """True if it has a definition; builtin sources and those of plug-ins have none."""
    return source.definition is not None


def _words(step: PlanStep) -> str:
    return {
        "create": "is new",
        "change": "differs",
        "publish": "is a draft, to be published",
        "delete": "is in no file, to be deleted with its facts and their history",
    }[step.action]


def differences(before: Document | None, after: Document) -> list[FieldDifference]:
    """Changes that turn the first document into the second one."""
    old, new = dict(_fields(before or {})), dict(_fields(after))
    return [
        FieldDifference(".".join(path), _shown(path, old.get(path)), _shown(path, new.get(path)))
        for path in (*old, *(path for path in new if path not in old))
        if old.get(path) != new.get(path)
    ]


def _fields(document: Document, place: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """Values of a document with their paths; a list is one value."""
    for name, value in document.items():
        path = (*place, name)
        if isinstance(value, Mapping) and value:
            yield from _fields(value, path)
        else:
            yield path, _encode(value).decode()


def _shown(path: _Path, value: str | None) -> str | None:
    """A value, or a note that it is hidden: logs must not hold a misplaced secret."""
    if value is None or path[:2] != _CONFIG:
        return value
    named = any(map(_SECRET.search, path[2:])) or _SECRET_MEMBER.search(value)
    return HIDDEN if named or path[2:3] == ("headers",) else value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
