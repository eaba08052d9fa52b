"""Events from the systems that are imported, proved by their signature."""

from http import HTTPStatus
from typing import Final

from factbook.api.importers.parts import IMPORTER
from factbook.errors import InputError, NotAllowedError, TooManyRequestsError
from factbook.http.context import State
from factbook.http.requests import Reply, Request, client_address, offloaded
from factbook.importers import hint_store
from factbook.importers.events import EventRules
from factbook.scheduling import lease
from factbook.storage import Transaction

# No system sends a larger one.
_LARGEST: Final = 25_000_000
_LONGEST_ID: Final = 200
_NO_BODY: Final = b"text/plain"


async def receive(request: Request, state: State) -> Reply:
    """Take an event as a hint about what is to be read again; nothing of it is believed.

    An event without an effect, and a delivery that was seen before, are answered alike.
    """
    if seconds := state.failures.waits(client_address(request.scope, state.proxies)):
        raise _slowed_down(state, seconds)
    importer = (await state.importers.current()).get(IMPORTER.of(request))
    rules = importer.events if importer else None
    # Whoever asks is not told which importers there are.
    if importer is None or rules is None:
        raise _refused(request, state)
    async with state.admission.room_for_body(request, _LARGEST, proved=False):
        delivery, hints = await _proved(request, state, rules)
    if not hints:
        return Reply(status=HTTPStatus.NO_CONTENT, content_type=_NO_BODY)
    # A process with another clock follows the hint.
    id_, now = importer.id, await lease.fetch_shared_time(state.database, state.clock)

    def work(transaction: Transaction) -> bool:
        is_new = hint_store.is_new(transaction, id_, delivery, now)
        if is_new:
            hint_store.give(transaction, id_, hints, now)
        return is_new

    is_new = await state.database.write(work)
    status = HTTPStatus.ACCEPTED if is_new else HTTPStatus.NO_CONTENT
    return Reply(status=status, content_type=_NO_BODY)


async def _proved(request: Request, state: State, rules: EventRules) -> tuple[str, frozenset[str]]:
    """The id of the delivery, and the hints of an event that is signed."""
    body = await request.body(_LARGEST, "the body of an event")
    if not await offloaded(rules.is_signed, request.headers, body):
        raise _refused(request, state)
    delivery = rules.delivery(request.headers)
    if not 1 <= len(delivery) <= _LONGEST_ID:
        raise InputError("The event has no id of its delivery.")
    return delivery, await offloaded(rules.hints, request.headers, body)


def _refused(request: Request, state: State) -> NotAllowedError | TooManyRequestsError:
    """The error for an event that nobody is known to have sent, which is counted."""
    if seconds := state.failures.take(client_address(request.scope, state.proxies)):
        return _slowed_down(state, seconds)
    return NotAllowedError(
        "The signature is not that of this importer's secret, or it takes no events."
    )


def _slowed_down(state: State, seconds: int) -> TooManyRequestsError:
    return TooManyRequestsError(
        "Too many failed authentications from this address "
        f"(failed_logins is {state.settings.failed_logins} a minute).",
        retry_after=seconds,
    )
