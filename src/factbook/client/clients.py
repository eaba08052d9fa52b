"""The two clients; the functions that make calls are common to both."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from factbook.client import (
    calls,
    catalog_calls,
    digest_calls,
    event_calls,
    source_calls,
    tool_calls,
)
from factbook.client.answers import Entity
from factbook.client.calls import Call
from factbook.client.catalog_calls import EntityBatch
from factbook.client.errors import ConnectionFailed
from factbook.client.responses import answer

T = TypeVar("T")
P = ParamSpec("P")


def _now(build: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    @wraps(build)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.send(build(*args, **kwargs))

    return method


def _soon(
    build: Callable[P, Call[T]],
) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    @wraps(build)
    async def method(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client.send(build(*args, **kwargs))

    return method


def _each_now(
    build: Callable[P, Call[EntityBatch]],
) -> "Callable[Concatenate[Client, P], Iterator[Entity]]":
    @wraps(build)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Entity]:
        call: Call[EntityBatch] | None = build(*args, **kwargs)
        while call is not None:
            page = client.send(call)
            yield from page.items
            call = page.next

    return method


def _each_soon(
    build: Callable[P, Call[EntityBatch]],
) -> "Callable[Concatenate[AsyncClient, P], AsyncIterator[Entity]]":
    @wraps(build)
    async def method(
        client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[Entity]:
        call: Call[EntityBatch] | None = build(*args, **kwargs)
        while call is not None:
            page = await client.send(call)
            for entity in page.items:
                yield entity
            call = page.next

    return method


@contextmanager
def _connecting(server: str) -> Iterator[None]:
    """Raise ConnectionFailed for every error of the HTTP library in this block."""
    try:
        yield
    except httpx2.TimeoutException:
        raise ConnectionFailed(f"{server} did not answer in time.") from None
    except httpx2.RequestError as error:
        raise ConnectionFailed(f"{server} is not reachable: {error}") from None


def _options(server: str, token: str | None) -> dict[str, Any]:
    """Options of both HTTP clients. Raises ValueError for an address or token that is none."""
    if not server.startswith(("http://", "https://")):
        raise ValueError(f"{server!r} is no server address: it begins with http:// or https://.")
    headers = {"accept": "application/json", "content-type": "application/json"}
    if token is not None:
        headers["authorization"] = f"Bearer {_sendable(token)}"
    return {"base_url": server, "headers": headers}


def _sendable(token: str) -> str:
    token = token.strip()
    # Refused here because the HTTP library's own refusal quotes the header.
    if not (token.isascii() and token.isprintable()):
        raise ValueError("The token has characters that a token cannot have.")
    return token


def _request(call: Call[T], word: str) -> dict[str, Any]:
    """The arguments that both kinds of HTTP client take for a request."""
    return {
        "method": call.method,
        "url": call.path.replace("{word}", word),
        "params": call.params,
        "content": call.content,
        "headers": call.headers,
        "timeout": httpx2.Timeout(call.timeout, connect=10),
    }


class Client:
    """A connection to a server, to be closed or used in a `with` statement.

    `transport` replaces the network. Raises ValueError for an address or a token that cannot be
    used; every method raises ClientError.
    """

    def __init__(
        self,
        server: str,
        token: str | None = None,
        *,
        push_word: str = "factbook",
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._server = server
        self._word = push_word
        self._http = httpx2.Client(transport=transport, **_options(server, token))

    def send(self, call: Call[T]) -> T:
        """The answer to a call."""
        with _connecting(self._server):
            response = self._http.request(**_request(call, self._word))
        return answer(call.read, response, call.answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    push = _now(calls.push)
    sets = _now(calls.sets)
    set = _now(calls.set)
    delete_set = _now(calls.delete_set)
    revisions = _now(calls.revisions)
    restore = _now(calls.restore)
    entities = _each_now(catalog_calls.entities)
    entity = _now(catalog_calls.entity)
    entities_by_refs = _now(catalog_calls.entities_by_refs)
    query = _now(catalog_calls.query)
    facets = _now(catalog_calls.facets)
    ancestry = _now(catalog_calls.ancestry)
    validate = _now(catalog_calls.validate)
    remove = _now(catalog_calls.remove)
    refresh = _now(catalog_calls.refresh)
    data_sources = _now(source_calls.data_sources)
    data_source = _now(source_calls.data_source)
    put_data_source = _now(source_calls.put_data_source)
    publish_data_source = _now(source_calls.publish_data_source)
    delete_data_source = _now(source_calls.delete_data_source)
    test_data_source = _now(source_calls.test_data_source)
    run_data_source = _now(source_calls.run_data_source)
    data_source_runs = _now(source_calls.data_source_runs)
    push_facts = _now(source_calls.push_facts)
    facts = _now(source_calls.facts)
    fact_history = _now(source_calls.fact_history)
    fact_distribution = _now(source_calls.fact_distribution)
    fact_values = _now(source_calls.fact_values)
    fact_values_csv = _now(source_calls.fact_values_csv)
    events = _now(event_calls.events)
    webhooks = _now(event_calls.webhooks)
    webhook = _now(event_calls.webhook)
    create_webhook = _now(event_calls.create_webhook)
    delete_webhook = _now(event_calls.delete_webhook)
    enable_webhook = _now(event_calls.enable_webhook)
    test_webhook = _now(event_calls.test_webhook)
    digests = _now(digest_calls.digests)
    digest = _now(digest_calls.digest)
    create_digest = _now(digest_calls.create_digest)
    replace_digest = _now(digest_calls.replace_digest)
    delete_digest = _now(digest_calls.delete_digest)
    test_digest = _now(digest_calls.test_digest)
    initialize = _now(tool_calls.initialize)
    tools = _now(tool_calls.tools)
    call = _now(tool_calls.call)


class AsyncClient:
    """The same as `Client`, awaited; `entities` is iterated with `async for`."""

    def __init__(
        self,
        server: str,
        token: str | None = None,
        *,
        push_word: str = "factbook",
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._server = server
        self._word = push_word
        self._http = httpx2.AsyncClient(transport=transport, **_options(server, token))

    async def send(self, call: Call[T]) -> T:
        """The answer to a call."""
        with _connecting(self._server):
            response = await self._http.request(**_request(call, self._word))
        return answer(call.read, response, call.answers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection."""
        await self._http.aclose()

    push = _soon(calls.push)
    sets = _soon(calls.sets)
    set = _soon(calls.set)
    delete_set = _soon(calls.delete_set)
    revisions = _soon(calls.revisions)
    restore = _soon(calls.restore)
    entities = _each_soon(catalog_calls.entities)
    entity = _soon(catalog_calls.entity)
    entities_by_refs = _soon(catalog_calls.entities_by_refs)
    query = _soon(catalog_calls.query)
    facets = _soon(catalog_calls.facets)
    ancestry = _soon(catalog_calls.ancestry)
    validate = _soon(catalog_calls.validate)
    remove = _soon(catalog_calls.remove)
    refresh = _soon(catalog_calls.refresh)
    data_sources = _soon(source_calls.data_sources)
    data_source = _soon(source_calls.data_source)
    put_data_source = _soon(source_calls.put_data_source)
    publish_data_source = _soon(source_calls.publish_data_source)
    delete_data_source = _soon(source_calls.delete_data_source)
    test_data_source = _soon(source_calls.test_data_source)
    run_data_source = _soon(source_calls.run_data_source)
    data_source_runs = _soon(source_calls.data_source_runs)
    push_facts = _soon(source_calls.push_facts)
    facts = _soon(source_calls.facts)
    fact_history = _soon(source_calls.fact_history)
    fact_distribution = _soon(source_calls.fact_distribution)
    fact_values = _soon(source_calls.fact_values)
    fact_values_csv = _soon(source_calls.fact_values_csv)
    events = _soon(event_calls.events)
    webhooks = _soon(event_calls.webhooks)
    webhook = _soon(event_calls.webhook)
    create_webhook = _soon(event_calls.create_webhook)
    delete_webhook = _soon(event_calls.delete_webhook)
    enable_webhook = _soon(event_calls.enable_webhook)
    test_webhook = _soon(event_calls.test_webhook)
    digests = _soon(digest_calls.digests)
    digest = _soon(digest_calls.digest)
    create_digest = _soon(digest_calls.create_digest)
    replace_digest = _soon(digest_calls.replace_digest)
    delete_digest = _soon(digest_calls.delete_digest)
    test_digest = _soon(digest_calls.test_digest)
    initialize = _soon(tool_calls.initialize)
    tools = _soon(tool_calls.tools)
    call = _soon(tool_calls.call)
