"""Refused calls in the audit, written beside the answers, in batches."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import structlog

from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller, Record
from factbook.clock import Clock
from factbook.errors import FactbookError, NotAllowedError, UnavailableError
from factbook.http.admission import RateLimit
from factbook.http.context import State
from factbook.http.requests import Request, client_address
from factbook.observability.metrics import Metrics
from factbook.storage import Database

log = structlog.get_logger("factbook.audit")

REFUSED: Final = "call.refused"

# Who may do what, of every call. Their messages are the service's own words.
_ACCESS: Final = frozenset({401, 403, 429})
# What became of a write that was not done. Their messages may quote what was sent.
_WRITES: Final = frozenset({400, 409, 412, 413})
_LONGEST_MESSAGE: Final = 200
_MOST_WAITING: Final = 10_000


class Refusals:
    """Records of refused calls, written in batches, beside the answers.

    Repeated refusals must not fill the disk: per minute an address gets 60 records, and addresses
    that have no known caller share one a second, with a burst of 3600. The rest is counted.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        metrics: Metrics,
        spawn: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._database = database
        self._metrics = metrics
        self._spawn = spawn
        # Half of the 60 at once, and half in the course of a minute.
        self._of_address = RateLimit(0.5, 30, clock)
        self._of_nobody = RateLimit(1, 3600, clock)
        self._waiting: list[Record] = []
        self._lock = asyncio.Lock()

    def add(self, record: Record) -> None:
        """Queue a record."""
        if (
            len(self._waiting) >= _MOST_WAITING
            or self._of_address.take(record.address)
            or (not record.actor and self._of_nobody.take(""))
        ):
            self._metrics.left_out_of_audit(1)
            return
        self._waiting.append(record)
        if len(self._waiting) == 1:
            self._spawn(self.write())

    async def write(self) -> None:
        """Return when every record added so far is written."""
        async with self._lock:
            records, self._waiting = self._waiting, []
            if not records:
                return
            try:
                await self._database.write(partial(trail.append_all, records=records))
            except UnavailableError:
                self._metrics.left_out_of_audit(len(records))
                log.warning("audit.unavailable", records=len(records))


def record_refusal(
    state: State,
    *,
    actor: str,
    address: str,
    action: str,
    object: str,
    status: int,
    token: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Record a refusal beside the answer; frequent ones are not all recorded.

    `object` and `detail` must not hold typed text that may contain a secret.
    """
    who = Caller(actor, state.clock(), address, token)
    entry = AuditEntry(action, object, detail or {})
    state.refusals.add(trail.record(who, entry, "refused", status))


def record_refused_request(
    request: Request, state: State, error: FactbookError, *, writes: bool
) -> None:
    """Record a refused request; more kinds of refusals for writes than for reads."""
    if not (error.status in _ACCESS or (writes and error.status in _WRITES)):
        return
    detail: dict[str, Any] = {"method": request.method[:20], "error": error.name}
    if error.status in _ACCESS:
        detail["message"] = trail.clean(error.message)[:_LONGEST_MESSAGE]
    if isinstance(error, NotAllowedError) and error.missing:
        detail["missing"] = error.missing
    record_refusal(
        state,
        actor=request.token.owner if request.token else "",
        address=client_address(request.scope, state.proxies),
        action=REFUSED,
        object=request.path,
        status=error.status,
        token=request.token_id,
        detail=detail,
    )
