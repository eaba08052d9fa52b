"""Parts of the running service that handlers use, by what they work on.

A handler names the smallest of these as its second argument; all of them are one `State`, which the
composition root makes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.sets import PushRules
from factbook.clock import Clock
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
    from factbook.http.pipeline import IncompleteAnswers
    from factbook.http.refusals import Refusals
    from factbook.http.usage_meter import UsageMeter
    from factbook.importers.registry import ImporterRegistry
    from factbook.observability.metrics import Metrics
    from factbook.telemetry.spans import Tracer
    from factbook.tools import Tool
    from factbook.webhooks.sender import Post


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
