"""Client through which an integration calls its host."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

import msgspec

from factbook.clock import SECOND, Clock, iso, now
from factbook.outbound import caches
from factbook.outbound.caches import AnswerCache, Kept
from factbook.outbound.calls import (
    ANONYMOUS,
    Credential,
    Exchange,
    HttpCall,
    RequestOptions,
    address,
    decoded,
    expiry,
    host_of,
    is_redirect,
    may_be_repeated,
    moved,
)
from factbook.outbound.outcome_rules import verdict
from factbook.outbound.outcomes import EMPTY, Answer, HostReply, Outcome
from factbook.outbound.rate_limits import ClientHealth, Governor

if TYPE_CHECKING:
    from factbook.outbound.sender import Sender

MOST_MOVES: Final = 3
ATTEMPTS: Final = 3
PATIENCE: Final = 10.0
USER_AGENT: Final = "factbook"

_TROUBLE: Final = frozenset(
    {Outcome.REFUSED, Outcome.DENIED, Outcome.RATE_LIMITED, Outcome.TRANSIENT}
)


# Makes a call, given the headers that prove who asks.
_Send = Callable[[Mapping[str, str]], Awaitable[HostReply]]


class HttpClient:
    """HTTP client for one host with one credential; it never calls another host.

    `further` are clients for other hosts, by base URL, each with a credential of its own. They
    share nothing with this one, whose health covers its own calls only.

    Every call only reads, whatever its method, so it may be repeated. No behaviour of the host
    raises: it ends in an `Answer` whose outcome classifies it. The credential's headers are sent to
    the origin of `base_url` alone.

    `governor` is shared by all clients of one credential. A rate limit that ends within `patience`
    seconds is waited for; a longer one ends in an answer with the time at which it ends.
    Raises ConfigurationError for an invalid base URL.
    """

    def __init__(
        self,
        base_url: str,
        sender: "Sender",
        *,
        credential: Credential = ANONYMOUS,
        governor: Governor | None = None,
        headers: Mapping[str, str] = EMPTY,
        further: "Mapping[str, HttpClient] | None" = None,
        patience: float = PATIENCE,
        clock: Clock = now,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.further = further or {}
        self._host = host_of(self.base_url)
        self._sender = sender
        self._credential = credential
        self._governor = governor or Governor(clock=clock)
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._health = ClientHealth()
        self._cache: AnswerCache | None = None
        self._urgent = False

    def caching(self, cache: AnswerCache) -> Self:
        """The same client, which skips calls whose answers are in the cache."""
        found = copy.copy(self)
        found._cache = cache
        found.further = {url: client.caching(cache) for url, client in self.further.items()}
        return found

    def urgent(self) -> Self:
        """The same client, whose calls do not wait for those of the others of its credential."""
        found = copy.copy(self)
        found._urgent = True
        return found

    async def aclose(self, *, idle: bool = False) -> None:
        """Close the sender, which other clients may share; with `idle`, after calls under way."""
        await self._sender.aclose(idle=idle)
        for client in self.further.values():
            await client.aclose(idle=idle)

    def shares(self, other: "HttpClient") -> bool:
        """True if both use the same connections."""
        return self._sender is other._sender

    @property
    def host(self) -> str:
        """The host's name, as used in messages."""
        return self._host

    @property
    def health(self) -> ClientHealth:
        """A copy of the current counters."""
        self._health.allowances = self._governor.allowances
        return self._health.copy()

    async def get(self, target: str, **options: Unpack[RequestOptions]) -> Answer:
        """Send a GET request."""
        return await self.request("GET", target, **options)

    async def post(self, target: str, json: Any, **options: Unpack[RequestOptions]) -> Answer:
        """Send a POST request with a JSON body, for a query that needs one."""
        return await self.request("POST", target, json=json, **options)

    async def request(
        self, method: str, target: str, json: Any = None, **options: Unpack[RequestOptions]
    ) -> Answer:
        """Send a request and return its result.

        `target` is appended to the base URL, or is a full URL on the same origin, such as one of a
        Link header. A target that leaves the origin or contains `..` is not requested.
        """
        url = address(self.base_url, target, options.get("query", EMPTY))
        content = None if json is None else msgspec.json.encode(json)
        call = HttpCall(method, url or "", content, options)
        for _ in range(MOST_MOVES + 1):
            if url is None:
                return self._failed("led to an address that is not its own, which was not asked")
            answer = await self._cached(call._replace(url=url))
            if not (options.get("follow") and is_redirect(call, answer)):
                return answer
            url = moved(self.base_url, url, answer.headers["location"])
        return self._failed(f"redirected more than {MOST_MOVES} times")

    async def delegate(self, exchange: Exchange, *, attempts: int = ATTEMPTS) -> Answer:
        """Let another program make a call, which is rate-limited and counted as one of this client.

        Its reply is classified like any other, by its status; `body` is the program's output.
        """

        call = HttpCall("GET", self.base_url, None, {"decode": False, "attempts": attempts})
        answer = await self._persistently(call, None, partial(self._sender.delegated, exchange))
        if self._cache is not None and not answer.ok and answer.missing.retried:
            self._cache.failures += 1
        return answer

    async def _cached(self, call: HttpCall) -> Answer:
        """The answer, from the cache of an earlier attempt if it is there."""
        key = (call.method, call.url, call.content)
        kept = None if self._cache is None else self._cache.get(key)
        if kept is not None:
            return kept
        answer = await self._remembering(call)
        if self._cache is not None:
            self._cache.put(key, answer)
        return answer

    async def _remembering(self, call: HttpCall) -> Answer:
        """The answer, conditional on the one in the caller's memory, if there is a memory."""
        memory = call.options.get("memory")
        if memory is None or call.method != "GET":
            return await self._persistently(call, None, partial(self._sent, call, None))
        key = caches.key_of(self._credential.identity, call.url, self._headers_of(call))
        kept = await caches.recall(memory, key)
        answer = await self._persistently(call, kept, partial(self._sent, call, kept))
        if answer.ok and not answer.remembered:
            await caches.keep(memory, key, HostReply(answer.status, answer.headers, answer.body))
        return answer

    async def _sent(self, call: HttpCall, kept: Kept | None, proof: Mapping[str, str]) -> HostReply:
        headers = {**self._headers_of(call), **(kept.conditions if kept else {})}
        for name, value in proof.items():
            headers.setdefault(name.lower(), value)
        return await self._sender.send(call.method, call.url, headers, call.content)

    async def _persistently(self, call: HttpCall, kept: Kept | None, send: _Send) -> Answer:
        answer = await self._sender.repeat(
            lambda: self._once(call, kept, send), call.options.get("attempts", ATTEMPTS)
        )
        if answer.outcome in _TROUBLE:
            self._health.last_error = answer.detail
            self._health.last_error_at = self._clock()
            self._health.resumes_at = answer.retry_at or self._health.resumes_at
        return answer

    async def _once(self, call: HttpCall, kept: Kept | None, send: _Send) -> tuple[Answer, bool]:
        """One call, and true if another attempt may succeed."""
        proof = await self._credential.authorize()
        if isinstance(proof, Answer):
            return proof, False
        budget, urgent = call.options.get("budget", ""), self._urgent
        async with self._governor.turn(budget, urgent=urgent):
            if self._governor.held_until(budget) is None and (
                seconds := self._governor.distance(budget, urgent=urgent)
            ):
                await self._sleep(seconds)
            held = await self._wait(budget)
            if held is not None:
                self._health.held += 1
                return self._limited(held), False
            self._health.calls += 1
            reply = await send(proof)
            answer = self._answer(call, reply, kept)
            refused = answer.outcome is Outcome.RATE_LIMITED
            until = self._governor.learn(budget, reply, refused=refused)
        self._health.credential_expires_at = (
            expiry(reply.headers) or self._health.credential_expires_at
        )
        if until is not None:
            limited = replace(answer, retry_at=until, detail=self._limited(until).detail)
            return limited, until - self._clock() <= self._patience * SECOND
        return answer, may_be_repeated(answer, reply)

    async def _wait(self, budget: str) -> int | None:
        """Wait for the end of a short limit; return the end of a long one."""
        waited = 0.0
        while (until := self._governor.held_until(budget)) is not None:
            seconds = (until - self._clock()) / SECOND
            waited += seconds
            if waited > self._patience:
                return until
            await self._sleep(seconds)
        return None

    def _answer(self, call: HttpCall, reply: HostReply, kept: Kept | None) -> Answer:
        remembered = reply.status == 304
        if remembered:
            if kept is None:
                return self._failed("answered 304 to a question without a condition", reply)
            self._health.not_modified += 1
            reply = kept.confirmed(reply)
        wanted = call.options.get("decode", True)
        form = call.options.get("form", Any)
        data, readable = decoded(reply, form) if wanted or reply.status >= 400 else (None, True)
        outcome, cause = verdict(reply, data, readable=readable)
        failure = reply.failure or f"answered {reply.status}"
        if cause:
            failure += f"; {cause}"
        if 200 <= reply.status < 300 and not readable:
            failure += " with a body that is not JSON"
        detail = "" if outcome is Outcome.OK else f"{self.host}: {failure}"
        return Answer(
            outcome,
            reply.status,
            reply.headers,
            reply.body,
            data,
            detail,
            remembered=remembered,
        )

    def _failed(self, what: str, reply: HostReply | None = None) -> Answer:
        status, headers = (reply.status, reply.headers) if reply else (0, EMPTY)
        return Answer(Outcome.TRANSIENT, status, headers, detail=f"{self.host}: {what}")

    def _limited(self, until: int) -> Answer:
        detail = f"{self.host}: no call before {iso(until)}"
        return Answer(Outcome.RATE_LIMITED, detail=detail, retry_at=until)

    def _headers_of(self, call: HttpCall) -> dict[str, str]:
        """All headers but the credential's."""
        headers = {"accept": "application/json", "user-agent": USER_AGENT, **self._headers}
        if call.content is not None:
            headers["content-type"] = "application/json"
        given = call.options.get("headers", EMPTY)
        return headers | {name.lower(): value for name, value in given.items()}
