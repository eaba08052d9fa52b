"""Parts of the running service that handlers use, grouped by subject.

A handler takes the smallest context it needs as its second argument. At run time every context is
the same `State`, which the composition root builds. This module also has the meter that counts tool
calls per token and writes them once a minute, and the set of background tasks.
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
    # For type checking only; modules that use them import them.
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
    """Counts tool calls in memory; a killed process loses at most the last minute."""

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
        # Calls and result characters per token on that day.
        self._counted: dict[str, list[int]] = {}
        self._writes_later = False

    def add(self, token_id: str, size: int, now: int) -> None:
        """Count a call answered at `now` with a result of `size` characters."""
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
        """Usage of each token in the last 30 days, including counts not written yet."""
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
        """Write the counts so far; keeps them if the database is unavailable."""
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
        """Add the current day's counts to the unwritten counts."""
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
    """Encoded results in which a tool server describes itself.

    `legacy` and `modern` answer `tools/list` in each era, `initialized` answers `initialize` by
    revision, and `discovered` answers `server/discover`.
    """

    legacy: str
    modern: str
    initialized: Mapping[str, str]
    discovered: str


class ServerChoice(NamedTuple):
    """The tool server that a client chose, and the form of its lists and answers.

    A compact server answers with text only. A strict server leaves out members added later to the
    answers of the first nine tools. A server for hosts, at `/mcp`, has resources, pages its lists,
    and reports a missing permission to the model in a tool error.
    """

    toolsets: tuple[str, ...]
    is_compact: bool = False
    for_hosts: bool = False
    has_output_schemas: bool = True
    is_strict: bool = False


class ToolServer(NamedTuple):
    """The tools and descriptions for a `ServerChoice`."""

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
        """The sets that are trusted to define group membership."""
        return PeopleTrust.of(self.settings)


@dataclass(kw_only=True)
class SourceContext(HandlerContext):
    """Handler context with data sources and their connections."""

    registry: "Registry"
    connect: "Connect"

    @property
    def sources(self) -> "Mapping[str, DataSource]":
        """Data sources not defined by users, by id."""
        return self.registry.fixed.sources


@dataclass(kw_only=True)
class ToolContext(SourceContext):
    """Handler context with the tool servers and the names of all toolsets.

    `calls` limits the calls per token.
    """

    toolsets: tuple[str, ...]
    calls: "RateLimit"
    server: Callable[[ServerChoice], ToolServer]

    @property
    def tools(self) -> "Mapping[str, Tool]":
        """The fact tools, which web pages offer too."""
        return self.server(ServerChoice(self.toolsets[:1])).tools

    @property
    def every_tool(self) -> "Mapping[str, Tool]":
        """The tools of every toolset."""
        return self.server(ServerChoice(self.toolsets)).tools


@dataclass(kw_only=True)
class WebhookContext(HandlerContext):
    """Handler context with the function that sends webhook messages."""

    post: "Post"


@dataclass(kw_only=True)
class ImporterContext(HandlerContext):
    """Handler context with the importers."""

    importers: "ImporterRegistry"


@dataclass(kw_only=True)
class State(ToolContext, WebhookContext, ImporterContext):
    """All contexts, plus the parts that the request pipeline uses."""

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
    # Set when the server stops accepting requests; open-ended answers end then.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


tasks_log = structlog.get_logger("factbook")


class Tasks:
    """Set of tasks, each kept until done; exceptions are logged."""

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
        """Cancel all tasks and wait until they end."""
        await shutdown.cancel(self._tasks)

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, UnavailableError):
            tasks_log.warning("task.unavailable", cause=error.cause)
        elif error is not None:
            tasks_log.error("task.failed", exc_info=error)
