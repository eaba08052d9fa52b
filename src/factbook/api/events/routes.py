"""The routes of events and webhooks, below /api/events."""

from collections.abc import Sequence

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.events import events, webhooks
from factbook.auth.permissions import EVENTS_READ, OPERATIONS_MANAGE
from factbook.errors import ConflictError, GoneError
from factbook.schemas import events as schemas

# A webhook takes events out of the service, and outlives the token of whoever made it.
_HOOKS = (EVENTS_READ, OPERATIONS_MANAGE)
_ALL = "/webhooks"
_ONE = f"{_ALL}/{{id}}"

EVENT_ROUTES: Sequence[Route] = (
    Route("GET", "", events.list_events, (EVENTS_READ,), events.PARAMETERS, refusals=(GoneError,)),
    Route("GET", _ALL, webhooks.list_all, _HOOKS),
    Route(
        "POST",
        _ALL,
        webhooks.create,
        _HOOKS,
        body=schemas.NewWebhook,
        status=201,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", _ONE, webhooks.get, _HOOKS, (webhooks.ID,)),
    Route(
        "DELETE", _ONE, webhooks.delete, _HOOKS, (webhooks.ID,), status=204, reading=NOTHING_STORED
    ),
    Route(
        "POST", f"{_ONE}/enable", webhooks.enable, _HOOKS, (webhooks.ID,), reading=NOTHING_STORED
    ),
    Route(
        "POST",
        f"{_ONE}/test",
        webhooks.test,
        _HOOKS,
        (webhooks.ID,),
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
)
