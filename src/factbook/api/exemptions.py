"""Exemptions over HTTP: requests, decisions, and reading them."""

from functools import partial
from typing import Any

import msgspec

from factbook.api.check_parameters import (
    EXEMPTION_CHECK,
    EXEMPTION_CURSOR,
    EXEMPTION_ID,
    EXEMPTION_SCORECARD,
    EXEMPTION_STATE,
    ONE_ENTITY,
    PAGE_LIMIT,
)
from factbook.catalog import ref as refs
from factbook.checks.definitions import definition_writes, exemption_store
from factbook.checks.definitions.definition_writes import ExemptionCaller
from factbook.checks.definitions.exemption_store import Decision, Exemption, ExemptionFilter
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, decode, reply
from factbook.schemas.checks import Exemptions, NewDecision, ShownExemption

_LARGEST_EXEMPTION = 16 * 1024
_PAGE = 100


async def get_exemptions(request: Request, state: HandlerContext) -> JsonReply[Exemptions]:
    """Exemptions and requests for them, newest first."""
    entity, cursor = ONE_ENTITY.of(request), EXEMPTION_CURSOR.of(request)
    wanted = ExemptionFilter(
        EXEMPTION_STATE.of(request),
        None if entity is None else str(refs.parse_ref(entity)),
        EXEMPTION_CHECK.of(request),
        EXEMPTION_SCORECARD.of(request),
    )
    limit = PAGE_LIMIT.of(request) or _PAGE
    found = await exemption_store.list_exemptions(
        state.database, wanted, limit + 1, _parse_exemption_cursor(cursor)
    )
    page = found[:limit]
    further = f"{page[-1].requested_at}-{page[-1].id}" if len(found) > limit else None
    return reply(Exemptions([_render_exemption(one) for one in page], further))


async def post_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Ask for an exemption of an entity from a check or a scorecard.

    Members of the group that owns the entity may ask, and tokens with the permission. It holds once
    it is approved, from `from` until `until`.
    """
    body: dict[str, Any] = decode(
        await request.json_body(_LARGEST_EXEMPTION, "an exemption"), dict[str, Any]
    )
    now = state.clock()
    wanted = exemption_store.parse_exemption_request(body, now)
    usual = state.settings.exemption_days
    work = partial(
        definition_writes.request_exemption,
        wanted=wanted,
        caller=_build_exemption_caller(request, state),
        now=now,
        usual_days=usual,
    )
    write = audit.audit_request_writes(
        request, state, definition_writes.audit_exemption("exemption.request"), 201
    )
    return reply(_render_exemption(await write(work)), 201)


async def get_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """An exemption."""
    return reply(
        _render_exemption(
            await exemption_store.get_exemption(state.database, EXEMPTION_ID.of(request))
        )
    )


async def approve_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Approve a request; somebody else than who asked for it has to, unless a setting allows it.

    One that scorecards with the check would not allow by now is refused.
    Where scorecards with the check name groups that approve, members of each of them decide.
    """
    return await _decide_exemption(request, state, "approve")


async def deny_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Deny a request."""
    return await _decide_exemption(request, state, "deny")


async def revoke_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Revoke an exemption that was approved; the check counts again in the same transaction."""
    return await _decide_exemption(request, state, "revoke")


async def _decide_exemption(
    request: Request, state: HandlerContext, decision: Decision
) -> JsonReply[ShownExemption]:
    id_ = EXEMPTION_ID.of(request)
    given: NewDecision = decode(
        await request.json_body(_LARGEST_EXEMPTION, "a decision") or b"{}", NewDecision
    )
    work = partial(
        definition_writes.decide_exemption,
        exemption_id=id_,
        decision=decision,
        caller=_build_exemption_caller(request, state),
        now=state.clock(),
        comment=given.comment,
        own=state.settings.exemption_self_approval,
        usual_days=state.settings.exemption_days,
    )
    write = audit.audit_request_writes(
        request, state, definition_writes.audit_exemption(f"exemption.{decision}")
    )
    return reply(_render_exemption(await write(work)))


def _build_exemption_caller(request: Request, state: HandlerContext) -> ExemptionCaller:
    assert request.token is not None
    return ExemptionCaller(request.actor, request.token.permissions, state.trust)


def _parse_exemption_cursor(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    at, _, id_ = cursor.partition("-")
    return int(at), id_


def _render_exemption(found: Exemption) -> ShownExemption:
    return msgspec.convert(found.render(), ShownExemption)
