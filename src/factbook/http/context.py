"""Parts of the running service that handlers use, by what they work on.

A handler names the smallest of these as its second argument; all of them are one `State`, which the
composition root makes.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from factbook.auth.limits import RateLimit
from factbook.catalog.sets import PushRules
from factbook.clock import Clock
from factbook.collection import Connect, Registry
from factbook.facts.datasource import DataSource
from factbook.http.admission import Admission
from factbook.http.refusal_log import Refusals
from factbook.http.trusted_hosts import Hosts, Proxies
from factbook.observability.metrics import Metrics
from factbook.settings import Settings
from factbook.storage import Database
from factbook.telemetry.spans import Tracer
from factbook.tools import Tool
from factbook.webhooks import Post


class Lists(NamedTuple):
    """The results of `tools/list`, encoded once, for the revisions of each era."""

    legacy: str
    modern: str


@dataclass
class State:
    """All parts, with those of the steps around every handler."""

    settings: Settings
    database: Database
    clock: Clock
    token_key: bytes
    rules: PushRules
    calls: RateLimit
    failures: RateLimit
    hosts: Hosts
    proxies: Proxies
    metrics: Metrics
    admission: Admission
    refusals: Refusals
    registry: Registry
    connect: Connect
    post: Post
    tools: Mapping[str, Tool]
    lists: Lists
    spawn: Callable[[Coroutine[Any, Any, object]], None]  # work that outlives its request
    tracer: Tracer
    touched: dict[str, int] = field(default_factory=dict)  # token → when its use was last noted

    @property
    def sources(self) -> Mapping[str, DataSource]:
        """The sources that no user defined, by their ids."""
        return self.registry.fixed.sources
