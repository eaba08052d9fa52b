"""HTTP client for the host of an integration, with rate limiting.

A client requests URLs on the origin of its base URL only. It learns the host's limits from its
answers and leaves a reserve. The HTTP library, which is slow to import, is in `network`, for code
that creates clients.
"""

import asyncio
import copy
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypedDict, Unpack
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

import msgspec

from factbook import json_parts
from factbook.clock import DAY, MINUTE, SECOND, Clock, iso
from factbook.clock import now as system_clock
from factbook.errors import ConfigurationError
from factbook.outbound import cache
from factbook.outbound.cache import AnswerCache, KeptReply, Memory
from factbook.outbound.outcomes import EMPTY, REPEATABLE, Answer, HostReply, Outcome, judge_reply

if TYPE_CHECKING:
    from factbook.outbound.network import Sender


RESERVE: Final = 0.10
LONGEST_PAUSE: Final = 15 * MINUTE

# GitHub and Datadog; GitLab and PagerDuty.
_PREFIXES: Final = ("x-ratelimit-", "ratelimit-")
# A smaller number is a delay in seconds, a larger one seconds since the epoch.
_EPOCH_FROM: Final = 1_000_000_000
_NUMBER: Final = re.compile(r"\s*(\d{1,12})(?:\.\d*)?\s*(?:$|[,;])", re.ASCII)


@dataclass(slots=True)
class Allowance:
    """One rate limit of a host, from its headers; `reset_at` is in milliseconds."""

    limit: int
    remaining: int
    reset_at: int | None


@dataclass(slots=True)
class ClientHealth:
    """Counters since the client was created.

    `calls` counts calls sent, `not_modified` the 304 answers, which use no quota, and `held`
    requests not sent because of a rate limit. `resumes_at` is the time when the latest rate limit
    allows the next call. `allowances` are keyed by budget. Times are in milliseconds.
    """

    calls: int = 0
    not_modified: int = 0
    held: int = 0
    resumes_at: int | None = None
    last_error: str = ""
    last_error_at: int | None = None
    credential_expires_at: int | None = None
    allowances: dict[str, Allowance] = field(default_factory=dict)

    def copy(self) -> "ClientHealth":
        """A copy of the current counters."""
        allowances = {name: replace(found) for name, found in self.allowances.items()}
        return replace(self, allowances=allowances)


class Governor:
    """Rate limiter for all calls of one process with one credential.

    Each process has its own governor, which learns the limits from the answers it receives. The
    number of concurrent batches in the credential's queue bounds all processes together.

    At most `at_once` calls run at a time, plus one urgent call. `pace` is the number of calls per
    minute by budget, evenly spaced. Calls wait while the host asks to wait, and stop at a reserve
    of each limit until it resets. Hosts may limit kinds of requests separately, as GitHub does REST
    and GraphQL: each kind is a budget, named by the caller.
    """

    def __init__(
        self,
        *,
        at_once: int = 1,
        pace: Mapping[str, int] | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.allowances: dict[str, Allowance] = {}
        self._turns = asyncio.Semaphore(at_once)
        self._urgent_turns = asyncio.Semaphore(1)
        self._clock = clock
        self._under_way: dict[str, int] = {}
        self._distances = {budget: MINUTE / calls for budget, calls in (pace or {}).items()}
        self._next: dict[str, float] = {}
        self._next_urgent: dict[str, float] = {}
        self._paused_until = 0
        self._refusals = 0

    @asynccontextmanager
    async def turn(self, budget: str = "", *, urgent: bool = False) -> AsyncIterator[None]:
        """Wait for a slot, and occupy it for one call on the budget.

        Urgent calls wait for other urgent calls only.
        """
        async with self._urgent_turns if urgent else self._turns:
            self._under_way[budget] = self._under_way.get(budget, 0) + 1
            try:
                yield
            finally:
                self._under_way[budget] -= 1

    def distance(self, budget: str = "", *, urgent: bool = False) -> float:
        """Seconds to wait before this call, to keep the pace.

        Reserves a place in the pace, so call it once per call. Urgent calls have a pace of their
        own and push back later calls that are not urgent.
        """
        distance, now = self._distances.get(budget), self._clock()
        if distance is None:
            return 0.0
        places = self._next_urgent if urgent else self._next
        begin = _find_next_place(places, budget, now)
        places[budget] = begin + distance
        if urgent:
            self._next[budget] = _find_next_place(self._next, budget, now) + distance
        return (begin - now) / SECOND

    def held_until(self, budget: str = "") -> int | None:
        """The time before which no call may be sent, or None."""
        until, now = max(self._paused_until, self._spent_until(budget)), self._clock()
        # A limit longer than a day can only come from a clock that was set back since.
        return until if now < until <= now + DAY else None

    def learn(self, budget: str, reply: HostReply, *, refused: bool) -> int | None:
        """Update the limits from a reply.

        `refused`: the host reported that a rate limit is reached. Returns the time at which calls
        may resume, or None if not refused.
        """
        moment = self._clock()
        date = _parse_header_date(reply.headers.get("date", ""))
        skew = 0 if date is None else moment - date
        allowance = find_allowance(reply.headers, moment, skew)
        if allowance:
            self.allowances[budget] = allowance
        asked = find_retry_time(reply.headers.get("retry-after", ""), moment, skew)
        if asked and (refused or reply.status == 503):
            self._paused_until = max(self._paused_until, asked)
        if not refused:
            self._refusals = 0 if 0 < reply.status < 500 else self._refusals
            return None
        if not asked and not (allowance and allowance.remaining == 0 and allowance.reset_at):
            # GitHub's rule for answers without a time: wait at least a minute, then longer.
            pause = min(MINUTE * 2 ** min(self._refusals, 10), LONGEST_PAUSE)
            self._paused_until = max(self._paused_until, moment + pause)
        self._refusals += 1
        return max(self._paused_until, self._spent_until(budget), moment)

    def _spent_until(self, budget: str) -> int:
        allowance = self.allowances.get(budget)
        if allowance is None or allowance.reset_at is None:
            return 0
        left = allowance.remaining - self._under_way.get(budget, 0)
        return allowance.reset_at if left < int(allowance.limit * RESERVE) else 0


def _find_next_place(places: Mapping[str, float], budget: str, now: int) -> float:
    found = max(now, places.get(budget, 0))
    # Few calls wait at a time: a place over a minute away means that the clock was set back.
    return found if found <= now + MINUTE else now


def find_allowance(headers: Mapping[str, str], moment: int, skew: int = 0) -> Allowance | None:
    """The limit in the rate-limit headers of an answer received at `moment`, or None.

    `skew`: milliseconds by which the host's clock is behind ours.
    """
    for prefix in _PREFIXES:
        limit = _parse_header_number(headers.get(f"{prefix}limit", ""))
        remaining = _parse_header_number(headers.get(f"{prefix}remaining", ""))
        if limit and remaining is not None:
            reset = _parse_header_number(headers.get(f"{prefix}reset", ""))
            reset_at = None
            if reset is not None:
                start = moment if reset < _EPOCH_FROM else skew
                reset_at = _clamp_to_day(start + reset * SECOND, moment)
            return Allowance(limit, remaining, reset_at)
    return None


def find_retry_time(value: str, moment: int, skew: int = 0) -> int | None:
    """The time in a Retry-After header, in seconds or as a date; None if it is neither.

    Between `moment` and a day later.
    """
    seconds = _parse_header_number(value)
    if seconds is not None:
        return _clamp_to_day(moment + seconds * SECOND, moment)
    date = _parse_header_date(value)
    return None if date is None else _clamp_to_day(date + skew, moment)


def _clamp_to_day(value: int, moment: int) -> int:
    return min(max(value, moment), moment + DAY)


def _parse_header_number(value: str) -> int | None:
    found = _NUMBER.match(value)
    return int(found[1]) if found else None


def _parse_header_date(value: str) -> int | None:
    try:
        date = parsedate_to_datetime(value)
        return int(date.replace(tzinfo=date.tzinfo or UTC).timestamp()) * SECOND
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_ABSOLUTE: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
# URL parsers disagree about these characters; a fragment is never sent.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x20\x7f\\#]")


def build_path(*segments: str | int) -> str:
    """A path from its segments, each percent-encoded: `/repos/owner/name`.

    Raises ValueError for an empty segment, `.` and `..`, which would name another resource.
    """
    texts = [str(segment) for segment in segments]
    if {"", ".", ".."} & set(texts):
        raise ValueError("A path cannot have an empty segment, . or .. in it.")
    return "".join(f"/{quote(text, safe='')}" for text in texts)


def extract_host(base_url: str) -> str:
    """The host of a base URL. Raises ConfigurationError for anything else."""
    host = _split_origin(base_url)[1]
    if not host or "?" in base_url or _UNPRINTABLE.search(base_url):
        raise ConfigurationError(
            "A base URL has to be like https://host/path, without name, password and query."
        )
    return host


def build_address(base_url: str, target: str, query: Mapping[str, str | int]) -> str | None:
    """The full URL of a target: a path below the base URL, or a URL on the same origin.

    None for another origin or a path with `..`.
    """
    url = target if _ABSOLUTE.match(target) else f"{base_url}/{target.lstrip('/')}"
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query)
    if _UNPRINTABLE.search(url) or _split_origin(url) != _split_origin(base_url):
        return None
    return None if has_dot_segments(unquote(urlsplit(url).path)) else url


def has_dot_segments(text: str) -> bool:
    """True if some server may read a segment of the path as `.` or `..`.

    Some servers treat a backslash as a slash, and drop everything after `;` in a segment.
    """
    segments = text.replace("\\", "/").split("/")
    return any(segment.partition(";")[0] in {".", ".."} for segment in segments)


def resolve_redirect(base_url: str, url: str, location: str) -> str | None:
    """The target of a redirect from `url`; None if the client may not request it."""
    try:
        return build_address(base_url, urljoin(url, location), {})
    except ValueError:
        return None


def _split_origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port; an empty host if this is not a plain HTTP URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", "", 0
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return "", "", 0
    return parts.scheme, parts.hostname, port


@dataclass(frozen=True, slots=True)
class Credential:
    """Credential for one host.

    `name` is for display and never secret. `identity` is part of the key of stored answers: two
    credentials share it only if they authenticate the same account. `authorize` returns the headers
    to send; it runs before each call, outside the queue. It may first fetch a short-lived token; if
    that fails, it returns the failed answer.
    """

    name: str
    identity: str = field(repr=False)
    authorize: Callable[[], Awaitable[Mapping[str, str] | Answer]] = field(repr=False)

    @classmethod
    def fixed(cls, name: str, headers: Mapping[str, str]) -> "Credential":
        """A credential whose headers never change, such as a token."""
        text = "\0".join(f"{key.lower()}\0{headers[key]}" for key in sorted(headers))

        async def authorize() -> Mapping[str, str]:
            return headers

        return cls(name, hashlib.sha256(text.encode()).hexdigest(), authorize)


ANONYMOUS: Final = Credential.fixed("anonymous", {})


def find_credential_expiry(headers: Mapping[str, str]) -> int | None:
    """The credential's expiry in milliseconds, if the host reports it (GitHub does)."""
    text = headers.get("github-authentication-token-expiration", "").replace("UTC", "+0000")
    try:
        found = datetime.strptime(text.strip(), "%Y-%m-%d %H:%M:%S %z").astimezone(UTC)
    except (ValueError, OverflowError):  # an offset can lead outside the years 1 to 9999
        return None
    return int(found.timestamp()) * SECOND


_REDIRECT_STATUSES: Final = frozenset({301, 302, 307, 308})


class RequestOptions(TypedDict, total=False):
    """Options of a request.

    `query` is appended to the target. `headers` override those of the client and the credential.
    `budget` names the limit that the call counts against. `memory`: a GET is conditional on the
    answer stored there, and a new answer replaces it. `follow`: follow redirects on the same
    origin. `decode=False`: successful bodies are not JSON. `form`: decode JSON as this type, which
    is faster; JSON that doesn't match is decoded without it. `attempts`: number of tries while
    failures are transient, three by default.
    """

    query: Mapping[str, str | int]
    headers: Mapping[str, str]
    budget: str
    memory: Memory
    follow: bool
    decode: bool
    form: Any
    attempts: int


# Larger bodies may have at most this many JSON parts; a GitHub file tree has up to 700,000.
_SMALL_BODY: Final = 1024 * 1024
_MOST_JSON_PARTS: Final = 2_000_000


class HttpCall(NamedTuple):
    """One call; `content` is its body."""

    method: str
    url: str
    content: bytes | None
    options: RequestOptions


def decode_reply(reply: HostReply, form: Any) -> tuple[Any, bool]:
    """The decoded JSON or None, and true if the body is valid; only 204 and 205 may lack one."""
    if not reply.body:
        return None, reply.status in {204, 205}
    if len(reply.body) > _SMALL_BODY and json_parts.has_more(reply.body, _MOST_JSON_PARTS):
        return None, False
    try:
        return msgspec.json.decode(reply.body, type=form), True
    except msgspec.ValidationError:
        return decode_reply(reply, Any)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None, False


def is_redirect(call: HttpCall, answer: Answer) -> bool:
    """True if the answer is a redirect that the same request may follow."""
    if answer.status not in _REDIRECT_STATUSES or "location" not in answer.headers:
        return False
    return call.method in {"GET", "HEAD"} or answer.status in {307, 308}


def is_repeatable(answer: Answer, reply: HostReply) -> bool:
    """True if another attempt may succeed: no reply, a failure of the host, or a broken body."""
    if answer.outcome is not Outcome.TRANSIENT:
        return False
    return reply.repeatable or reply.status in REPEATABLE or reply.status == 200


@dataclass(frozen=True, slots=True)
class HostRoute:
    """Addresses another program may connect to, with its credential and trusted certificates.

    `url` is the client's base URL. `name` and `port` belong to its host, or to the proxy in front
    of it; the program may connect only to the checked `addresses`. `proxy` is the proxy's URL with
    its password, or empty. `authorities` are certificates in PEM form. `headers` authenticate the
    caller.
    """

    url: str
    name: str
    port: int
    addresses: Sequence[str]
    proxy: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)


# Makes one call on a route. The host's answers become replies with an equivalent HTTP status,
# everything else a reply with a `failure`. Enforces its own time limit and never raises.
Exchange = Callable[[HostRoute], Awaitable[HostReply]]


MOST_REDIRECTS: Final = 3
ATTEMPTS: Final = 3
PATIENCE: Final = 10.0
USER_AGENT: Final = "factbook"

_TROUBLE: Final = frozenset(
    {Outcome.REFUSED, Outcome.DENIED, Outcome.RATE_LIMITED, Outcome.TRANSIENT}
)


# Makes a call with the headers that authenticate it.
_Send = Callable[[Mapping[str, str]], Awaitable[HostReply]]


class HttpClient:
    """HTTP client for one host with one credential.

    `further` holds clients for other hosts by base URL, each with its own credential. They share
    nothing with this client, whose health counts only its own calls.

    Every call only reads, whatever its method, so it can be retried. Failures of the host never
    raise: the outcome of the `Answer` classifies them. The credential's headers are sent only to
    the origin of `base_url`.

    All clients of one credential share a `governor`. The client waits for rate limits that end
    within `patience` seconds; for longer ones, the answer has the end in `retry_at`. Raises
    ConfigurationError for an invalid base URL.
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
        clock: Clock = system_clock,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.further = further or {}
        self._host = extract_host(self.base_url)
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
        """A copy of the client that skips calls with a cached answer."""
        found = copy.copy(self)
        found._cache = cache
        found.further = {url: client.caching(cache) for url, client in self.further.items()}
        return found

    def urgent(self) -> Self:
        """A copy of the client whose calls don't wait for other calls of its credential."""
        found = copy.copy(self)
        found._urgent = True
        return found

    async def aclose(self, *, idle: bool = False) -> None:
        """Close the sender, which other clients may share; with `idle`, after running calls."""
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

        `target` is appended to the base URL, or is a full URL on the same origin, such as one from
        a Link header. Targets on another origin or with `..` are refused.
        """
        url = build_address(self.base_url, target, options.get("query", EMPTY))
        content = None if json is None else msgspec.json.encode(json)
        call = HttpCall(method, url or "", content, options)
        for _ in range(MOST_REDIRECTS + 1):
            if url is None:
                return self._failed("led to an address outside its base URL, which was not called")
            answer = await self._cached(call._replace(url=url))
            if not (options.get("follow") and is_redirect(call, answer)):
                return answer
            url = resolve_redirect(self.base_url, url, answer.headers["location"])
        return self._failed(f"redirected more than {MOST_REDIRECTS} times")

    async def delegate(self, exchange: Exchange, *, attempts: int = ATTEMPTS) -> Answer:
        """Let another program make a call, rate-limited and counted like the client's own.

        Its reply is classified by its status; `body` is the program's output.
        """

        call = HttpCall("GET", self.base_url, None, {"decode": False, "attempts": attempts})
        answer = await self._persistently(call, None, partial(self._sender.delegated, exchange))
        if self._cache is not None and not answer.ok and answer.missing.retried:
            self._cache.failures += 1
        return answer

    async def _cached(self, call: HttpCall) -> Answer:
        accept = self._headers_of(call).get("accept", "")
        read_as = (call.options.get("decode", True), call.options.get("form", Any))
        key = (call.method, call.url, call.content, accept, *read_as)
        kept = None if self._cache is None else self._cache.get(key)
        if kept is not None:
            return kept
        answer = await self._remembering(call)
        if self._cache is not None:
            self._cache.put(key, answer)
        return answer

    async def _remembering(self, call: HttpCall) -> Answer:
        """Make a GET conditional on the answer in the caller's memory, if there is a memory."""
        memory = call.options.get("memory")
        if memory is None or call.method != "GET":
            return await self._persistently(call, None, partial(self._sent, call, None))
        key = cache.make_answer_key(self._credential.identity, call.url, self._headers_of(call))
        kept = await cache.recall_reply(memory, key)
        answer = await self._persistently(call, kept, partial(self._sent, call, kept))
        if answer.ok and not answer.remembered:
            await cache.keep_reply(
                memory, key, HostReply(answer.status, answer.headers, answer.body)
            )
        return answer

    async def _sent(
        self, call: HttpCall, kept: KeptReply | None, proof: Mapping[str, str]
    ) -> HostReply:
        headers = {**self._headers_of(call), **(kept.conditions if kept else {})}
        for name, value in proof.items():
            headers.setdefault(name.lower(), value)
        return await self._sender.send(call.method, call.url, headers, call.content)

    async def _persistently(self, call: HttpCall, kept: KeptReply | None, send: _Send) -> Answer:
        answer = await self._sender.repeat(
            lambda: self._once(call, kept, send), call.options.get("attempts", ATTEMPTS)
        )
        if answer.outcome in _TROUBLE:
            self._health.last_error = answer.detail
            self._health.last_error_at = self._clock()
            self._health.resumes_at = answer.retry_at or self._health.resumes_at
        return answer

    async def _once(
        self, call: HttpCall, kept: KeptReply | None, send: _Send
    ) -> tuple[Answer, bool]:
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
            find_credential_expiry(reply.headers) or self._health.credential_expires_at
        )
        if until is not None:
            limited = replace(answer, retry_at=until, detail=self._limited(until).detail)
            return limited, until - self._clock() <= self._patience * SECOND
        return answer, is_repeatable(answer, reply)

    async def _wait(self, budget: str) -> int | None:
        """Wait out a short rate limit; return the end of a longer one."""
        waited = 0.0
        while (until := self._governor.held_until(budget)) is not None:
            seconds = (until - self._clock()) / SECOND
            waited += seconds
            if waited > self._patience:
                return until
            await self._sleep(seconds)
        return None

    def _answer(self, call: HttpCall, reply: HostReply, kept: KeptReply | None) -> Answer:
        remembered = reply.status == 304
        if remembered:
            if kept is None:
                return self._failed("answered 304 to an unconditional request", reply)
            self._health.not_modified += 1
            reply = kept.confirmed(reply)
        wanted = call.options.get("decode", True)
        form = call.options.get("form", Any)
        data, readable = (
            decode_reply(reply, form) if wanted or reply.status >= 400 else (None, True)
        )
        outcome, cause = judge_reply(reply, data, readable=readable)
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
        """All headers except the credential's."""
        headers = {"accept": "application/json", "user-agent": USER_AGENT, **self._headers}
        if call.content is not None:
            headers["content-type"] = "application/json"
        given = call.options.get("headers", EMPTY)
        return headers | {name.lower(): value for name, value in given.items()}
