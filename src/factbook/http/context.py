"""Parts of the running service that handlers use, by what they work on.

A handler names the smallest of these as its second argument; all of them are one `State`, which the
composition root makes. Beside requests run the meter of the calls of tools by token, which is
written once a minute, and background tasks until the service ends.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from factbook import shutdown
from factbook.auth import tokens
from factbook.auth.tokens import TokenUsage, UsageDay
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.sets import PushRules
from factbook.clock import DAY, Clock
from factbook.errors import UnavailableError
from factbook.http.requests import Proxies
from factbook.settings import Settings
from factbook.storage import Database

if TYPE_CHECKING:
    # Only who works on them imports them.
    from factbook.auth.oauth.clients import OAuthOptions
    from factbook.auth.oauth.company_tokens import CompanyTokens
    from factbook.checks.trials import WriteTrial
    from factbook.datasources.clients import Connect
    from factbook.datasources.registry import Registry
    from factbook.facts.datasource import DataSource
    from factbook.http.admission import Admission, Hosts, RateLimit
    from factbook.http.pipeline import IncompleteAnswers, Refusals
    from factbook.importers.registry import ImporterRegistry
    from factbook.observability.metrics import Metrics
    from factbook.telemetry.spans import Tracer
    from factbook.tools import Tool
    from factbook.webhooks.sender import Post


usage_log = structlog.get_logger("factbook.usage")

SHOWN_DAYS: Final = 30
_PAUSE: Final = 60.0  # seconds


class UsageMeter:
    """Counts in memory; a process that is killed loses a minute of them at most."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._spawn = spawn
        self._unwritten: dict[UsageDay, TokenUsage] = {}
        self._day = 0
        # Calls and size of each token on that day.
        self._counted: dict[str, list[int]] = {}
        self._writes_later = False

    def add(self, token_id: str, size: int, now: int) -> None:
        """Count a call answered now whose result has so many characters."""
        day = now // DAY
        if day != self._day:
            self._gather()
            self._day = day
        counted = self._counted.get(token_id)
        if counted is None:
            self._counted[token_id] = [1, size]
        else:
            counted[0] += 1
            counted[1] += size
        if not self._writes_later:
            self._writes_later = True
            self._spawn(self._write_later())

    async def of(self, ids: Sequence[str]) -> dict[str, TokenUsage]:
        """The use of each of these tokens in the last thirty days, with what is not written yet."""
        first = self._clock() // DAY - SHOWN_DAYS + 1
        self._gather()
        unwritten = list(self._unwritten.items())
        found = await tokens.sum_token_usage(self._database, ids, first)
        shown = {id_: found.get(id_, TokenUsage()) for id_ in ids}
        for key, more in unwritten:
            if key.token_id in shown and key.day >= first:
                shown[key.token_id] = shown[key.token_id].plus(more)
        return shown

    async def write(self) -> None:
        """Write what was counted so far."""
        self._gather()
        found, self._unwritten = self._unwritten, {}
        if not found:
            return
        try:
            await self._database.write(partial(tokens.add_token_usage, found=found))
        except UnavailableError as error:
            usage_log.warning("usage.unavailable", cause=error.cause)
            for key, lost in found.items():
                self._unwritten[key] = self._unwritten.get(key, TokenUsage()).plus(lost)

    def _gather(self) -> None:
        """Put what was counted beside what is not written yet."""
        counted, self._counted = self._counted, {}
        for token_id, found in counted.items():
            key = UsageDay(token_id, self._day)
            before = self._unwritten.get(key, TokenUsage())
            self._unwritten[key] = before.plus(TokenUsage(*found))

    async def _write_later(self) -> None:
        await asyncio.sleep(_PAUSE)
        self._writes_later = False
        await self.write()


class Descriptions(NamedTuple):
    """The answers of a server of tools about itself, as encoded results.

    Those of `tools/list` for the revisions of each era, that of `initialize` for each revision that
    has it, and that of `server/discover`.
    """

    legacy: str
    modern: str
    initialized: Mapping[str, str]
    discovered: str


class ServerChoice(NamedTuple):
    """A choice of a server of tools, and of the form of its lists and answers.

    A compact one answers with text alone, a strict one without members that were added to the
    answers of the first nine tools. One for hosts, at `/mcp`, has resources, answers in
    pages, and tells a model in a tool error what permission is missing.
    """

    toolsets: tuple[str, ...]
    is_compact: bool = False
    for_hosts: bool = False
    has_output_schemas: bool = True
    is_strict: bool = False


class ToolServer(NamedTuple):
    """The server of a choice."""

    tools: "Mapping[str, Tool]"
    described: Callable[[], Descriptions]
    choice: ServerChoice


@dataclass(kw_only=True)
class HandlerContext:
    """The parts that every handler may use."""

    settings: Settings
    database: Database
    clock: Clock
    token_key: bytes
    rules: PushRules
    metrics: "Metrics"
    admission: "Admission"
    proxies: Proxies
    tracer: "Tracer"
    write_trial: "Callable[[str], WriteTrial]"
    usage: "UsageMeter"

    @property
    def trust(self) -> PeopleTrust:
        """The sets that are believed about who is in a group."""
        return PeopleTrust.of(self.settings)


@dataclass(kw_only=True)
class SourceContext(HandlerContext):
    """The same, with the data sources and their connections."""

    registry: "Registry"
    connect: "Connect"

    @property
    def sources(self) -> "Mapping[str, DataSource]":
        """Sources not defined by users, by their ids."""
        return self.registry.fixed.sources


@dataclass(kw_only=True)
class ToolContext(SourceContext):
    """The same, with the servers of tools, each of toolsets with these names.

    `calls` bounds how often a token calls.
    """

    toolsets: tuple[str, ...]
    calls: "RateLimit"
    server: Callable[[ServerChoice], ToolServer]

    @property
    def tools(self) -> "Mapping[str, Tool]":
        """The tools of facts, which pages offer too."""
        return self.server(ServerChoice(self.toolsets[:1])).tools

    @property
    def every_tool(self) -> "Mapping[str, Tool]":
        """The tools of every toolset."""
        return self.server(ServerChoice(self.toolsets)).tools


@dataclass(kw_only=True)
class WebhookContext(HandlerContext):
    """The common parts, with what sends a message to a webhook."""

    post: "Post"


@dataclass(kw_only=True)
class ImporterContext(HandlerContext):
    """The common parts, with the importers."""

    importers: "ImporterRegistry"


@dataclass(kw_only=True)
class State(ToolContext, WebhookContext, ImporterContext):
    """All parts, with those of the steps around every handler."""

    hosts: "Hosts"
    oauth: "OAuthOptions"
    company: "CompanyTokens | None"
    failures: "RateLimit"
    registrations: "RateLimit"
    registration_records: "RateLimit"
    incomplete: "IncompleteAnswers"
    refusals: "Refusals"
    spawn: Callable[[Coroutine[Any, Any, object]], None]  # work that outlives its request
    touched: dict[str, int] = field(default_factory=dict)  # token → when its use was last noted
    # Set when the server takes no more requests: answers without an end of their own end then.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


tasks_log = structlog.get_logger("factbook")


class Tasks:
    """Set of tasks, each kept until it is done; its exception is logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def __iter__(self) -> "Iterator[asyncio.Task[object]]":
        """Iterate over the running tasks."""
        return iter(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Start a task."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def finish(self) -> None:
        """Cancel all tasks until they have ended."""
        await shutdown.cancel(self._tasks)

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, UnavailableError):
            tasks_log.warning("task.unavailable", cause=error.cause)
        elif error is not None:
            tasks_log.error("task.failed", exc_info=error)
