"""Interface of importers: kinds, configured importers, rules for events, and mappings.

A mapping in the settings sets entity fields from a system's description of the thing:

    [importers.github.acme.mapping.Component]
    "spec.owner" = "item.topics[?starts_with(@, 'team-')] | [0]"
    "metadata.annotations.example.com/wiki" = "https://wiki.example.com/{{ item.name }}"

A value is a JMESPath expression, or a text with such expressions in double braces. Expressions
apply to a document with two members: `item`, the thing as the system describes it, and `entity`,
the importer's entity. A missing value removes the field. Entities from files are left alone.
"""

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from factbook.clock import DAY, HOUR, MINUTE
from factbook.datasources.custom import extraction
from factbook.datasources.custom.extraction import NO_SUCH_VALUE, Extractor, Template
from factbook.errors import ConfigurationError, InputError
from factbook.facts.datasource import DataSource, Handler
from factbook.importers.snapshot import PREFIX, ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.integrations.integration import (
    NOWHERE,
    Authorize,
    Collected,
    InstanceOptions,
    Integration,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import ANONYMOUS, HttpClient
from factbook.outbound.outcomes import Missing, Outcome
from factbook.settings.option_tables import DEFAULT_INSTANCE, about

MOST_FIELDS: Final = 100
# Time limit for mapping everything in one import.
LONGEST_SECONDS: Final = 60.0
_EVERY_KIND: Final = ""
# The rest of the path after these is a single key, even with dots.
_KEYED: Final = ("metadata.annotations.", "metadata.labels.")
_ROOTS: Final = ("metadata", "spec")
_NO_TEXT: Final = Missing(Outcome.TRANSIENT, "a value between braces is neither text nor number")
_TOO_LATE: Final = f"the mapping of one import took more than {LONGEST_SECONDS:.0f} seconds"

Table = Mapping[str, str | Mapping[str, str]]
Fields = Mapping[str, Extractor]


@dataclass(frozen=True)
class EntityMapping:
    """Fields by entity kind in lower case; fields for every kind are under ""."""

    kinds: Mapping[str, Fields]

    def fields(self, kind: object) -> Fields:
        """The fields of entities of a kind."""
        own = self.kinds.get(str(kind).lower(), {})
        return {**self.kinds.get(_EVERY_KIND, {}), **own}


@dataclass(frozen=True)
class _TemplateText:
    """Template text; there is no result if any of its values is missing."""

    template: Template

    def of(self, document: Any) -> Any | Missing:
        texts = []
        for part in self.template.parts:
            text = part if isinstance(part, str) else _format_value(part.of(document))
            if isinstance(text, Missing):
                return text
            texts.append(text)
        return "".join(texts)


def parse_mapping(table: Table) -> EntityMapping:
    """The mapping in a table of the settings; raises ConfigurationError with the place."""
    kinds: dict[str, dict[str, Extractor]] = {}
    for kind, path, text in _list_mapping_rows(table):
        place = f'mapping.{kind}."{path}"' if kind else f'mapping."{path}"'
        try:
            first, *rest = segments = _split_field_path(path)
            if first not in _ROOTS or not rest or not all(segments):
                raise InputError("is not a field: write metadata.… or spec.…")
            kinds.setdefault(kind.lower(), {})[path] = (
                _TemplateText(extraction.parse_template(text))
                if "{{" in text or "}}" in text
                else extraction.compile_expression(text)
            )
        except InputError as error:
            raise ConfigurationError(f"{place} {error.message}") from None
    if sum(map(len, kinds.values())) > MOST_FIELDS:
        raise ConfigurationError(f"mapping has more than {MOST_FIELDS} fields")
    return EntityMapping(kinds)


def map_snapshot(snapshot: Snapshot, mapping: EntityMapping) -> Snapshot:
    """The snapshot with the mapping applied to its entities.

    A failed mapping is reported as a problem, and earlier entities from the same origin stay.
    """
    end = time.monotonic() + LONGEST_SECONDS
    return replace(snapshot, parts=tuple(_map_part(part, mapping, end) for part in snapshot.parts))


def _map_part(part: SnapshotPart, mapping: EntityMapping, end: float) -> SnapshotPart:
    items, problems = _map_items(part.items, mapping, end)
    unread = {problem.origin for problem in problems}
    return replace(
        part,
        items=tuple(items),
        stand_ins=tuple(_map_items(part.stand_ins, mapping, end)[0]),
        problems=(*part.problems, *problems),
        unread=part.unread | unread,
    )


def _map_items(
    given: Iterable[ImportedItem], mapping: EntityMapping, end: float
) -> tuple[list[ImportedItem], list[ReadingProblem]]:
    items: list[ImportedItem] = []
    problems: list[ReadingProblem] = []
    for item in given:
        found = _map_item(item, mapping.fields(item.entity.get("kind")), end)
        if isinstance(found, ImportedItem):
            items.append(found)
        else:
            problems.append(found)
    return items, problems


def _map_item(item: ImportedItem, fields: Fields, end: float) -> ImportedItem | ReadingProblem:
    """The item with its fields, or the problem of the first one that fails."""
    if item.raw is None or not fields:
        return item
    if time.monotonic() > end:
        return item.problem(_TOO_LATE)
    document = {"item": msgspec.to_builtins(item.raw), "entity": item.entity}
    entity: Any = item.entity
    for path, value in extraction.extract_values(fields, document).items():
        if isinstance(value, Missing) and value != NO_SUCH_VALUE:
            return item.problem(f"the mapping failed: {value.detail}", path)
        there = None if isinstance(value, Missing) or value == "" else value
        try:
            entity = _set_at_path(entity, _split_field_path(path), there)
        except InputError as error:
            return item.problem(f"the mapping failed: {error.message}", path)
    return replace(item, entity=entity)


def _set_at_path(value: Any, segments: Sequence[str], new: Any) -> Any:
    """The value with another one at a path, or without it if that is None."""
    if value is None and new is None:
        return None
    if not (value is None or isinstance(value, Mapping)):
        raise InputError("its parent is not a table")
    first, *rest = segments
    members = dict(value or {})
    inner = _set_at_path(members.get(first), rest, new) if rest else new
    if inner is None:
        members.pop(first, None)
    else:
        members[first] = inner
    return members


def _list_mapping_rows(table: Table) -> Iterator[tuple[str, str, str]]:
    """Kind, field and value of each row."""
    for key, value in table.items():
        if isinstance(value, str):
            yield _EVERY_KIND, key, value
        else:
            yield from ((key, path, text) for path, text in value.items())


def _split_field_path(path: str) -> list[str]:
    for start in _KEYED:
        if path.startswith(start):
            return [*start.rstrip(".").split("."), path.removeprefix(start)]
    return path.split(".")


def _format_value(found: Any | Missing) -> str | Missing:
    """A value as part of a text; no value for an empty one."""
    match found:
        case Missing():
            return found
        case "":
            return NO_SUCH_VALUE
        case bool():
            return "true" if found else "false"
        case str() | int() | float():
            return str(found)
    return _NO_TEXT


# By lower-case name.
Headers = Mapping[bytes, bytes]

NEVER: Final = "never"
NO_NAMESPACE: Final = "namespace has to be 1-63 of a-z, 0-9 and inner hyphens"
_INTERVAL: Final = re.compile(r"(\d{1,4})([mhd])", re.ASCII)
_UNITS: Final = {"m": MINUTE, "h": HOUR, "d": DAY}
_LONGEST_INTERVAL: Final = 30 * DAY

# Receives a sentence about the current step.
Show = Callable[[str], None]


class EventRules(NamedTuple):
    """Rules for the events that a system sends to an importer.

    `is_signed` is true for a body signed with the secret; `delivery` is the id of a delivery,
    unchanged when repeated. `hints` name the things to read again, as text for the importer; empty
    if there are none.
    """

    is_signed: Callable[[Headers, bytes | bytearray], bool]
    delivery: Callable[[Headers], str]
    hints: Callable[[Headers, bytes | bytearray], frozenset[str]]


class ImporterOptions(InstanceOptions, frozen=True, kw_only=True):
    """Table `[importers.<kind>.<name>]` of the settings; each kind adds options of its own."""

    every: Annotated[
        str,
        about("Time from one import to the next: `30m`, `6h`, `1d`, or `never`: only when asked."),
    ] = "1h"
    mapping: Annotated[
        dict[str, str | dict[str, str]],
        about(
            "Fields of entities by their paths, with expressions that give them; fields of one "
            "kind in a table of its name. See *Import*."
        ),
    ] = msgspec.field(default_factory=dict)

    @property
    def interval(self) -> int | None:
        """Milliseconds from one import to the next; None if imports run only on request."""
        found = _INTERVAL.fullmatch(self.every)
        return int(found[1]) * _UNITS[found[2]] if found else None

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        if self.every != NEVER and not MINUTE <= (self.interval or 0) <= _LONGEST_INTERVAL:
            yield "every has to be between 1m and 30d, such as 6h, or never"
        try:
            parse_mapping(self.mapping)
        except ConfigurationError as error:
            yield error.message

    def further(self) -> Mapping[str, Authorize]:
        """Further hosts to call besides the integration's, by base URL."""
        return {}


class AccountImporterOptions(ImporterOptions, frozen=True, kw_only=True):
    """Options of a kind that reads with an integration's credential."""

    integration: Annotated[
        str, about("Name of the table `[integrations.<vendor>.<name>]` with the credential.")
    ] = DEFAULT_INSTANCE
    account: Annotated[
        dict[str, Any],
        about("Secret. The options of such a table, where the settings have none."),
    ] = msgspec.field(default_factory=dict)


class ReadingContext(NamedTuple):
    """Context of one reading, which begins at `now`.

    `account` are the options of the integration whose credential the client has; None for a kind
    that has its own.
    """

    client: HttpClient
    memory: Memory
    now: int
    account: Any


Options = TypeVar("Options", bound=ImporterOptions)


Read = Callable[[ReadingContext, Options, Show], Awaitable[Snapshot]]


Reread = Callable[[ReadingContext, Options, Sequence[str]], Awaitable[Snapshot]]


@dataclass(frozen=True, kw_only=True)
class Access:
    """The host called by an importer with its own credential; absent if it makes no calls.

    The fields are those of an integration.
    """

    base_url: str = NOWHERE
    authorize: Authorize = field(default=lambda _: ANONYMOUS, repr=False)
    calls_at_once: int = 4
    pace: Mapping[str, int] = field(default_factory=dict)
    further: Mapping[str, Authorize] = field(default_factory=dict, repr=False)

    def integration(self, id_: str, title: str) -> Integration:
        """An integration that only importers call through."""
        return Integration(
            source=DataSource(id=id_, title=title, handler=Handler("builtin", id_)),
            base_url=self.base_url,
            authorize=self.authorize,
            calls_at_once=self.calls_at_once,
            pace=self.pace,
            further=self.further,
            target=lambda entity: Missing(Outcome.NOT_FOUND, "importers have no targets"),
            collect=_collect_nothing,
        )


@dataclass(frozen=True, kw_only=True)
class ImporterKind(Generic[Options]):
    """Kind of importer, exported by its module as IMPORTER.

    `options` is the type of its table in the settings. With a `vendor` it reads with the credential
    of an integration, and `options` are AccountImporterOptions; `account_options` are those of the
    integration that an import needs. Without one `access` makes its own from the options.
    `completed` adds to the options what those of the account say, such as the option `owners`; it
    raises ConfigurationError for something that is missing. People make importers of it in the
    browser if it is `by_people`, which one that reads files or secrets of its machine must not be.
    One that takes `events` reads again what they hint at, and nothing else, with `reread`.
    It `makes` entities of these kinds, in lower case, which a mapping can change; none: of any.
    `file_page` is the path of a file's page behind the address of its repository, with the file as
    `{}`.
    """

    id: str
    title: str
    options: type[Options]
    read: Read[Options]
    vendor: str = ""
    account_options: tuple[str, ...] = ()
    owners: str = ""
    by_people: bool = False
    makes: tuple[str, ...] = ()
    file_page: str = ""
    access: Callable[[Options], Access] = lambda options: Access()
    completed: Callable[[Options, Any], Options] = lambda options, account: options
    events: Callable[[Options], EventRules | None] = lambda options: None
    reread: Reread[Options] | None = None


@dataclass(frozen=True, kw_only=True)
class Importer:
    """Configured importer; `id` names its sets, `every` is in milliseconds, None: only on request.

    `integration` is what its client is made for. `read` takes the client, what was remembered, the
    time of the reading, and what shows its progress; `reread` the hints of `events` instead.
    """

    id: str
    kind: str
    title: str
    every: int | None
    integration: Integration
    read: Callable[[HttpClient, Memory, int, Show], Awaitable[Snapshot]] = field(repr=False)
    events: EventRules | None = field(default=None, repr=False)
    reread: Callable[[HttpClient, Memory, int, Sequence[str]], Awaitable[Snapshot]] | None = field(
        default=None, repr=False
    )

    @property
    def memory(self) -> str:
        """The name under which its memory is kept."""
        return f"{PREFIX}{self.id}"


async def _collect_nothing(
    targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    return {}
