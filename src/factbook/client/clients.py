"""The two clients, which share the functions that make calls."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from factbook.client import calls
from factbook.client.answers import ConnectionFailed, Entity, receive_answer
from factbook.client.calls import Call, EntityBatch

T = TypeVar("T")
P = ParamSpec("P")


def _call_now(build: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    @wraps(build)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.send(build(*args, **kwargs))

    return method


def _call_soon(
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
    """Convert every error of the HTTP library in this block to ConnectionFailed."""
    try:
        yield
    except httpx2.TimeoutException:
        raise ConnectionFailed(f"{server} did not answer in time.") from None
    except httpx2.RequestError as error:
        raise ConnectionFailed(f"{server} is not reachable: {error}") from None


def _client_options(server: str, token: str | None) -> dict[str, Any]:
    """Options of both HTTP clients. Raises ValueError for an invalid address or token."""
    if not server.startswith(("http://", "https://")):
        raise ValueError(f"{server!r} is not a server address: it begins with http:// or https://.")
    headers = {"accept": "application/json", "content-type": "application/json"}
    if token is not None:
        token = token.strip()
        # Checked here because the HTTP library's own error message quotes the header.
        if not (token.isascii() and token.isprintable()):
            raise ValueError("The token has characters that a token cannot have.")
        headers["authorization"] = f"Bearer {token}"
    return {"base_url": server, "headers": headers}


def _request_arguments(call: Call[T], word: str) -> dict[str, Any]:
    """Build the arguments of a request, for either HTTP client."""
    return {
        "method": call.method,
        "url": call.path.replace("{word}", word),
        "params": call.params,
        "content": call.content,
        "headers": call.headers,
        "timeout": httpx2.Timeout(call.timeout, connect=10),
    }


class Client:
    """A connection to a server; close it, or use it in a `with` statement.

    `transport` replaces the network. Raises ValueError for an invalid address or token; every
    method raises ClientError.
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
        self._http = httpx2.Client(transport=transport, **_client_options(server, token))

    def send(self, call: Call[T]) -> T:
        """The answer to a call."""
        with _connecting(self._server):
            response = self._http.request(**_request_arguments(call, self._word))
        return receive_answer(call.read, response, call.answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    push = _call_now(calls.push)
    sets = _call_now(calls.sets)
    set = _call_now(calls.set)
    delete_set = _call_now(calls.delete_set)
    revisions = _call_now(calls.revisions)
    restore = _call_now(calls.restore)
    entities = _each_now(calls.entities)
    entity = _call_now(calls.entity)
    entities_by_refs = _call_now(calls.entities_by_refs)
    query = _call_now(calls.query)
    facets = _call_now(calls.facets)
    ancestry = _call_now(calls.ancestry)
    validate = _call_now(calls.validate)
    remove = _call_now(calls.remove)
    refresh = _call_now(calls.refresh)
    data_sources = _call_now(calls.data_sources)
    data_source = _call_now(calls.data_source)
    put_data_source = _call_now(calls.put_data_source)
    publish_data_source = _call_now(calls.publish_data_source)
    delete_data_source = _call_now(calls.delete_data_source)
    test_data_source = _call_now(calls.test_data_source)
    run_data_source = _call_now(calls.run_data_source)
    data_source_runs = _call_now(calls.data_source_runs)
    push_facts = _call_now(calls.push_facts)
    facts = _call_now(calls.facts)
    fact_history = _call_now(calls.fact_history)
    fact_distribution = _call_now(calls.fact_distribution)
    fact_values = _call_now(calls.fact_values)
    fact_values_csv = _call_now(calls.fact_values_csv)
    events = _call_now(calls.events)
    webhooks = _call_now(calls.webhooks)
    webhook = _call_now(calls.webhook)
    create_webhook = _call_now(calls.create_webhook)
    delete_webhook = _call_now(calls.delete_webhook)
    enable_webhook = _call_now(calls.enable_webhook)
    test_webhook = _call_now(calls.test_webhook)
    digests = _call_now(calls.digests)
    digest = _call_now(calls.digest)
    create_digest = _call_now(calls.create_digest)
    replace_digest = _call_now(calls.replace_digest)
    delete_digest = _call_now(calls.delete_digest)
    test_digest = _call_now(calls.test_digest)
    initialize = _call_now(calls.initialize)
    tools = _call_now(calls.tools)
    call = _call_now(calls.call)


class AsyncClient:
    """Like `Client`, but awaited; iterate over `entities` with `async for`."""

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
        self._http = httpx2.AsyncClient(transport=transport, **_client_options(server, token))

    async def send(self, call: Call[T]) -> T:
        """The answer to a call."""
        with _connecting(self._server):
            response = await self._http.request(**_request_arguments(call, self._word))
        return receive_answer(call.read, response, call.answers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection."""
        await self._http.aclose()

    push = _call_soon(calls.push)
    sets = _call_soon(calls.sets)
    set = _call_soon(calls.set)
    delete_set = _call_soon(calls.delete_set)
    revisions = _call_soon(calls.revisions)
    restore = _call_soon(calls.restore)
    entities = _each_soon(calls.entities)
    entity = _call_soon(calls.entity)
    entities_by_refs = _call_soon(calls.entities_by_refs)
    query = _call_soon(calls.query)
    facets = _call_soon(calls.facets)
    ancestry = _call_soon(calls.ancestry)
    validate = _call_soon(calls.validate)
    remove = _call_soon(calls.remove)
    refresh = _call_soon(calls.refresh)
    data_sources = _call_soon(calls.data_sources)
    data_source = _call_soon(calls.data_source)
    put_data_source = _call_soon(calls.put_data_source)
    publish_data_source = _call_soon(calls.publish_data_source)
    delete_data_source = _call_soon(calls.delete_data_source)
    test_data_source = _call_soon(calls.test_data_source)
    run_data_source = _call_soon(calls.run_data_source)
    data_source_runs = _call_soon(calls.data_source_runs)
    push_facts = _call_soon(calls.push_facts)
    facts = _call_soon(calls.facts)
    fact_history = _call_soon(calls.fact_history)
    fact_distribution = _call_soon(calls.fact_distribution)
    fact_values = _call_soon(calls.fact_values)
    fact_values_csv = _call_soon(calls.fact_values_csv)
    events = _call_soon(calls.events)
    webhooks = _call_soon(calls.webhooks)
    webhook = _call_soon(calls.webhook)
    create_webhook = _call_soon(calls.create_webhook)
    delete_webhook = _call_soon(calls.delete_webhook)
    enable_webhook = _call_soon(calls.enable_webhook)
    test_webhook = _call_soon(calls.test_webhook)
    digests = _call_soon(calls.digests)
    digest = _call_soon(calls.digest)
    create_digest = _call_soon(calls.create_digest)
    replace_digest = _call_soon(calls.replace_digest)
    delete_digest = _call_soon(calls.delete_digest)
    test_digest = _call_soon(calls.test_digest)
    initialize = _call_soon(calls.initialize)
    tools = _call_soon(calls.tools)
    call = _call_soon(calls.call)
