"""Plans that make the definitions of a server match files: their steps, shown and executed."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar

import typer

from factbook.cli.failures import DIFFERENT, REFUSED, CommandError
from factbook.cli.output import print_json, say, say_coloured
from factbook.client import ApiError
from factbook.definitions.documents import Document, ordered, same

# Of a definition, and of an exemption.
Action = Literal["create", "change", "publish", "delete", "request", "approve", "replace", "revoke"]
_Path = tuple[str, ...]

_CONFIG: Final = ("handlerDefinition", "config")
_WORDS: Final = "auth|cookie|credential|key|passw|secret|token"
_SECRET: Final = re.compile(_WORDS, re.IGNORECASE)
_SECRET_MEMBER: Final = re.compile(rf'"[^"]*({_WORDS})[^"]*":', re.IGNORECASE)
_HIDDEN: Final = "(not shown)"
_LONGEST: Final = 200

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}
_MARKS: Final[Mapping[Action, str]] = {
    "create": "+",
    "change": "~",
    "publish": "~",
    "delete": "-",
    "request": "+",
    "approve": "+",
    "replace": "~",
    "revoke": "-",
}
_NEWS: Final[Mapping[Action, str]] = {
    "create": "is new",
    "change": "differs",
    "publish": "is a draft, to be published",
    "request": "is new, to be asked for",
    "approve": "is asked for, to be approved",
    "replace": "differs, to be revoked and asked for anew",
    "revoke": "is in no file, to be revoked",
}


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


class StoredDocuments(NamedTuple):
    """The documents of a definition on the server; None for those that there are not."""

    draft: Document | None = None
    published: Document | None = None


class DefinitionChange(NamedTuple):
    """A difference between a file and the server, and the action that ends it."""

    action: Action
    differences: list[FieldDifference]


@dataclass(frozen=True)
class PlanStep:
    """Change of one definition; `document` is None for one that is deleted.

    `results` is the word for what is deleted along. `own_statuses` are those of answers about this
    definition; after any other no definition would fare better.
    """

    results: ClassVar[str] = "results"
    own_statuses: ClassVar[frozenset[int]] = frozenset({400, 404, 409, 413})

    change: DefinitionChange
    id: str
    origin: str | None = None
    document: dict[str, Any] | None = None

    @property
    def action(self) -> Action:
        """The action of the change."""
        return self.change.action

    @property
    def name(self) -> str:
        """The definition as it is told of."""
        return self.id

    def lines(self) -> Iterator[tuple[str, str | None]]:
        """The lines below the step, each with its colour."""
        for difference in self.change.differences:
            yield str(difference), _COLOURS[difference.mark]

    def as_json(self) -> dict[str, Any]:
        """The step in the form of `--json`."""
        differences = [each._asdict() for each in self.change.differences]
        return {"id": self.id, "action": self.action, "differences": differences}


S = TypeVar("S", bound=PlanStep)

DELETION: Final = DefinitionChange("delete", [])


def change(document: Document, there: StoredDocuments, *, drafts: bool) -> DefinitionChange | None:
    """The change from the server to a file; None if nothing differs."""
    if there == StoredDocuments():
        return DefinitionChange("create", _differences({}, document))
    pending = there.published if there.draft is None else there.draft
    if same(document, pending) and (drafts or there.draft is None):
        return None
    action: Action = "publish" if same(document, pending) else "change"
    # What is published is compared, unless only its draft differs.
    before = pending if drafts or same(document, there.published) else there.published or pending
    return DefinitionChange(action, _differences(before or {}, document))


def report(steps: Sequence[PlanStep], *, as_json: bool) -> None:
    """Print a plan, and end with a code of its own if there is something to apply."""
    if as_json:
        print_json([step.as_json() for step in steps])
    else:
        show(steps)
    if steps:
        raise typer.Exit(DIFFERENT)


def show(steps: Sequence[PlanStep]) -> None:
    """Print the steps, field by field, and their counts."""
    for step in steps:
        where = f", {step.origin}" if step.origin else ""
        words = _NEWS.get(step.action, f"is in no file, to be deleted with its {step.results}")
        say_coloured(f"{step.name}: {words}{where}", _COLOURS[_MARKS[step.action]])
        for line, colour in step.lines():
            say_coloured(f"  {line}", colour)
    actions = [step.action for step in steps]
    counts = [f"{actions.count(one)} to {one}" for one in _MARKS if one in actions]
    say(", ".join(counts) or "Nothing to do.")


def apply(steps: Iterable[S], run: Callable[[S], str]) -> None:
    """Run every step, and say what each has done; a refusal does not stop the others.

    Raises CommandError with all refusals. Running it again continues after the last success.
    """
    refused = list[str]()
    for step in steps:
        try:
            say(f"{step.name}: {run(step)}")
        except ApiError as error:
            if error.status not in step.own_statuses:
                raise
            problems = error.details.get("problems") or []
            lines = [f"{problem['path']}: {problem['message']}" for problem in problems]
            refused += [f"{step.name}: {line}" for line in lines or [error.message]]
    if refused:
        raise CommandError("The server refused:", REFUSED, refused)


def _differences(before: Document, after: Document) -> list[FieldDifference]:
    """Changes that turn the first document into the second one."""
    old, new = dict(_fields(before)), dict(_fields(after))
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
            yield path, ordered(value).decode()


def _shown(path: _Path, value: str | None) -> str | None:
    """A value, or a note that it is hidden: logs must not hold a misplaced secret."""
    if value is None or path[:2] != _CONFIG:
        return value
    named = any(map(_SECRET.search, path[2:])) or _SECRET_MEMBER.search(value)
    return _HIDDEN if named or path[2:3] == ("headers",) else value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
