"""A client of a Factbook server: `Client` for ordinary code, `AsyncClient` for asyncio.

    with Client("https://factbook.example.com", token) as factbook:
        factbook.push("accounts", entities)
        for entity in factbook.entities(filters=["kind=component"]):
            ...

Every method is written once, in `calls`, as a function that returns a `Call`: the request, and the
reader of its answer. The two classes differ only in how they send a call.
"""

import sys

from factbook.client import answers, calls
from factbook.client.answers import (
    ApiError,
    ClientError,
    ConnectionFailed,
    Entity,
    Initialized,
    ProtocolError,
    ServerInfo,
    ToolCallError,
    UnexpectedAnswer,
)
from factbook.client.answers import DataSourcePage as SourcePage
from factbook.client.answers import PushAnswer as Pushed
from factbook.client.answers import SetItem as Item
from factbook.client.answers import SetItemPage as SetPage
from factbook.client.answers import ToolDescription as Tool
from factbook.client.answers import TrialAnswer as Tried
from factbook.client.answers import WebhookAnswer as Webhook
from factbook.client.calls import Call
from factbook.client.clients import AsyncClient, Client
from factbook.schemas.catalog import (
    Ancestor,
    Ancestry,
    Changes,
    Difference,
    FacetValue,
    Notice,
    PageInfo,
    Revision,
    SetSummary,
)
from factbook.schemas.catalog import EntityPage as QueryPage
from factbook.schemas.events import Event, TriedWebhook, Undelivered
from factbook.schemas.events import Events as EventPage
from factbook.schemas.events import ShownDigest as Digest
from factbook.schemas.facts import Answered as TriedAnswer
from factbook.schemas.facts import Definition as SourceDefinition
from factbook.schemas.facts import (
    EntityFacts,
    FactDistribution,
    PastFacts,
    PushedFacts,
    PushedItem,
    ValuePage,
)
from factbook.schemas.facts import History as HistoryPage
from factbook.schemas.facts import ItemProblem as Problem
from factbook.schemas.facts import LatestFacts as FactsPage
from factbook.schemas.facts import OneSource as DataSource
from factbook.schemas.facts import PublishedVersion as Version
from factbook.schemas.facts import Run as SourceRun
from factbook.schemas.facts import ShownFact as FactType

# Former modules that are now part of `calls` and `answers`, for programs that import them.
catalog_calls = digest_calls = event_calls = source_calls = tool_calls = calls
errors = responses = answers
_CALLS = ("catalog_calls", "digest_calls", "event_calls", "source_calls", "tool_calls")
sys.modules |= dict.fromkeys([f"{__name__}.{name}" for name in _CALLS], calls)
sys.modules |= dict.fromkeys([f"{__name__}.{name}" for name in ("errors", "responses")], answers)

__all__ = [
    "Ancestor",
    "Ancestry",
    "ApiError",
    "AsyncClient",
    "Call",
    "Changes",
    "Client",
    "ClientError",
    "ConnectionFailed",
    "DataSource",
    "Difference",
    "Digest",
    "Entity",
    "EntityFacts",
    "Event",
    "EventPage",
    "FacetValue",
    "FactDistribution",
    "FactType",
    "FactsPage",
    "HistoryPage",
    "Initialized",
    "Item",
    "Notice",
    "PageInfo",
    "PastFacts",
    "Problem",
    "ProtocolError",
    "Pushed",
    "PushedFacts",
    "PushedItem",
    "QueryPage",
    "Revision",
    "ServerInfo",
    "SetPage",
    "SetSummary",
    "SourceDefinition",
    "SourcePage",
    "SourceRun",
    "Tool",
    "ToolCallError",
    "Tried",
    "TriedAnswer",
    "TriedWebhook",
    "Undelivered",
    "UnexpectedAnswer",
    "ValuePage",
    "Version",
    "Webhook",
]
