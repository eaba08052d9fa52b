"""Rate limits of a host, learned from its answers and kept with a reserve; counters of calls."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from factbook.clock import DAY, MINUTE, SECOND, Clock
from factbook.clock import now as system_clock
from factbook.outbound.outcomes import HostReply

RESERVE: Final = 0.10
LONGEST_PAUSE: Final = 15 * MINUTE

# GitHub and Datadog; GitLab and PagerDuty.
_PREFIXES: Final = ("x-ratelimit-", "ratelimit-")
# A number of seconds below this is a distance, above it a moment since the epoch.
_EPOCH_FROM: Final = 1_000_000_000
_NUMBER: Final = re.compile(r"\s*(\d{1,12})(?:\.\d*)?\s*(?:$|[,;])", re.ASCII)


@dataclass(slots=True)
class Allowance:
    """State of one of a host's limits, as its headers give it; `reset_at` is in milliseconds."""

    limit: int
    remaining: int
    reset_at: int | None


@dataclass(slots=True)
class ClientHealth:
    """Counters since the client was made.

    `calls` counts calls sent, `not_modified` those that used no quota, `held` requests not sent
    because of a rate limit; `resumes_at` is the time at which the last limit met allows the next
    call. `allowances` are by budget name. Times are in milliseconds.
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
    """Rate limiter for the calls that one process makes with one credential, over all clients.

    Other processes have governors of their own, which learn the same limits from their answers; all
    of them together are bounded by the number of batches under way in the credential's queue.
    At most `at_once` calls are under way, and one that is urgent; `pace` gives the calls that may
    begin in a minute, by budget, at even intervals. No call is made that would use up the
    share of a limit left to others, before the limit is reset, nor while the host has asked to
    wait. A host's limits may differ by kind of request, such as GitHub's for REST and GraphQL: each
    is a budget with a name that the caller chooses.
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
        """Wait for a slot among the calls under way, and hold it for one call on the budget.

        An urgent one waits for other urgent ones alone.
        """
        async with self._urgent_turns if urgent else self._turns:
            self._under_way[budget] = self._under_way.get(budget, 0) + 1
            try:
                yield
            finally:
                self._under_way[budget] -= 1

    def distance(self, budget: str = "", *, urgent: bool = False) -> float:
        """Seconds until the call of this turn may begin, to keep the pace.

        Reserves the next place in the pace, so call it once for each call. Urgent calls keep the
        pace among themselves, and those that come after make room for them.
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
        """The time before which the call of this turn must not be made, or None."""
        until, now = max(self._paused_until, self._spent_until(budget)), self._clock()
        # No limit lasts longer than a day: such a one is of a clock that was set back since.
        return until if now < until <= now + DAY else None

    def learn(self, budget: str, reply: HostReply, *, refused: bool) -> int | None:
        """Update the limits from a reply.

        `refused`: the host said that a rate limit is reached. Returns the time at which calls may
        go on, or None if it was not refused.
        """
        moment = self._clock()
        skew = _measure_skew(reply.headers, moment)
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
            # What GitHub asks for when its answer names no time: a minute at least, then longer.
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
    """The next free place in the pace of a budget."""
    found = max(now, places.get(budget, 0))
    # No more calls wait than are under way at once: more is of a clock that was set back.
    return found if found <= now + MINUTE else now


def find_allowance(headers: Mapping[str, str], moment: int, skew: int = 0) -> Allowance | None:
    """The limit in the rate-limit headers of an answer received at `moment`, or None.

    `skew` is the time by which the host's clock is behind ours.
    """
    for prefix in _PREFIXES:
        limit = _parse_header_number(headers.get(f"{prefix}limit", ""))
        remaining = _parse_header_number(headers.get(f"{prefix}remaining", ""))
        if limit and remaining is not None:
            reset = _parse_header_number(headers.get(f"{prefix}reset", ""))
            return Allowance(limit, remaining, _resolve_reset(reset, moment, skew))
    return None


def find_retry_time(value: str, moment: int, skew: int = 0) -> int | None:
    """The time in a Retry-After header, given in seconds or as a date; None if in neither form.

    Never earlier than `moment`, never more than a day later.
    """
    seconds = _parse_header_number(value)
    if seconds is not None:
        return _clamp_to_day(moment + seconds * SECOND, moment)
    date = _parse_header_date(value)
    return None if date is None else _clamp_to_day(date + skew, moment)


def _resolve_reset(reset: int | None, moment: int, skew: int) -> int | None:
    if reset is None:
        return None
    if reset < _EPOCH_FROM:
        return _clamp_to_day(moment + reset * SECOND, moment)
    return _clamp_to_day(reset * SECOND + skew, moment)


def _clamp_to_day(value: int, moment: int) -> int:
    return min(max(value, moment), moment + DAY)


def _measure_skew(headers: Mapping[str, str], moment: int) -> int:
    date = _parse_header_date(headers.get("date", ""))
    return 0 if date is None else moment - date


def _parse_header_number(value: str) -> int | None:
    found = _NUMBER.match(value)
    return int(found[1]) if found else None


def _parse_header_date(value: str) -> int | None:
    try:
        date = parsedate_to_datetime(value)
        return int(date.replace(tzinfo=date.tzinfo or UTC).timestamp()) * SECOND
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
