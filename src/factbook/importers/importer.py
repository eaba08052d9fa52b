"""Interface of an importer: a kind, a configured importer, and rules for events."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import ConfigurationError
from factbook.facts.datasource import DataSource, Handler
from factbook.importers.mapping import parse_mapping
from factbook.importers.snapshot import PREFIX, Snapshot
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

# By lower-case name.
Headers = Mapping[bytes, bytes]

NEVER: Final = "never"
NO_NAMESPACE: Final = "namespace has to be 1-63 of a-z, 0-9 and inner hyphens"
_INTERVAL: Final = re.compile(r"(\d{1,4})([mhd])", re.ASCII)
_UNITS: Final = {"m": MINUTE, "h": HOUR, "d": DAY}
_LONGEST_INTERVAL: Final = 30 * DAY

# Told, in a sentence, what is being read.
Show = Callable[[str], None]


class EventRules(NamedTuple):
    """Rules for the events that a system sends to an importer.

    `is_signed` is true for a body that was signed with the secret; `delivery` is the id of a
    delivery, the same when it is sent again. `hints` name what is to be read again, in texts that
    the importer understands; there are none where nothing is.
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
        """Milliseconds from one import to the next; None if there is none by itself."""
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
        """The hosts that are called beside the one of the integration, by base URL."""
        return {}


class AccountImporterOptions(ImporterOptions, frozen=True, kw_only=True):
    """The same of a kind that reads with the credential of an integration."""

    integration: Annotated[
        str, about("Name of the table `[integrations.<vendor>.<name>]` with the credential.")
    ] = DEFAULT_INSTANCE
    account: Annotated[
        dict[str, Any],
        about("Secret. The options of such a table, where the settings have none."),
    ] = msgspec.field(default_factory=dict)


class ReadingContext(NamedTuple):
    """Means of one reading, which begins at `now`.

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
    """The host that an importer with a credential of its own calls; one that calls none has none.

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
    """Configured importer; `id` names its sets, `every` are milliseconds, None: only when asked.

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
