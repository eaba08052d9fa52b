"""A client of a Factbook server: `Client` for ordinary code, `AsyncClient` for asyncio.

    with Client("https://factbook.example.com", token) as factbook:
        factbook.push("accounts", entities)
        for entity in factbook.entities(filters=["kind=component"]):
            ...

Every method is written once, in `calls` and the modules named after it, as a function that
returns a `Call`: the request, and the reader of its answer. The two classes differ only in how they
send one.
"""

from factbook.client.answers import (
    Ancestor,
    Ancestry,
    Changes,
    Difference,
    Entity,
    FacetValue,
    Initialized,
    Notice,
    PageInfo,
    PushAnswer,
    QueryPage,
    Revision,
    ServerInfo,
    SetItem,
    SetItemPage,
    SetSummary,
    ToolDescription,
)
from factbook.client.calls import Call
from factbook.client.clients import AsyncClient, Client
from factbook.client.errors import (
    ApiError,
    ClientError,
    ConnectionFailed,
    ProtocolError,
    ToolCallError,
    UnexpectedAnswer,
)
from factbook.client.event_answers import Event, EventPage, TriedWebhook, Undelivered, Webhook
from factbook.client.source_answers import (
    DataSource,
    EntityFacts,
    FactsPage,
    FactType,
    HistoryPage,
    PastFacts,
    Problem,
    PushedFacts,
    PushedItem,
    SourceDefinition,
    SourcePage,
    SourceRun,
    Tried,
    TriedAnswer,
    Version,
)

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
    "Entity",
    "EntityFacts",
    "Event",
    "EventPage",
    "FacetValue",
    "FactType",
    "FactsPage",
    "HistoryPage",
    "Initialized",
    "SetItem",
    "Notice",
    "PageInfo",
    "PastFacts",
    "Problem",
    "ProtocolError",
    "PushAnswer",
    "PushedFacts",
    "PushedItem",
    "QueryPage",
    "Revision",
    "ServerInfo",
    "SetItemPage",
    "SetSummary",
    "SourceDefinition",
    "SourcePage",
    "SourceRun",
    "ToolDescription",
    "ToolCallError",
    "Tried",
    "TriedAnswer",
    "TriedWebhook",
    "Undelivered",
    "UnexpectedAnswer",
    "Version",
    "Webhook",
]
