"""Tokens and the audit log over HTTP."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from factbook.api.parameters import FACTS_LIMIT, Choice, Moment, Text
from factbook.audit.trail import (
    ACTIONS,
    AUDIT_CURSOR,
    LONGEST,
    page_audit,
    render_audit_cursor,
    render_record,
    split_audit_cursor,
    stream_audit_lines,
)
from factbook.auth import permissions, token_rules, tokens
from factbook.auth.token_rules import TokenRequest
from factbook.auth.tokens import Narrowing, StoredToken, TokenUsage
from factbook.clock import iso, iso_or_none
from factbook.errors import InputError
from factbook.http import audit
from factbook.http.context import HandlerContext, State
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas import common
from factbook.schemas.common import Time, Uuid, WireAnswer
from factbook.schemas.events import AuditLine, AuditPage

_AUDIT_PAGE = 100
NDJSON: Final = "application/x-ndjson"
ACTOR: Final = Text(
    name="actor",
    description="Only what this user did: an entity reference, or `command line`; empty for calls "
    "of which nobody is known.",
    longest=LONGEST,
    example="user:default/kim",
)
ACTION: Final = Choice(
    name="action",
    description="Only what was done in this way.",
    words=tuple(ACTIONS),
    example="set.push",
)
OBJECT: Final = Text(
    name="object",
    description="Only what was done to this: the id of a set, token or data source, the reference "
    "of an entity, or the path of a refused call.",
    longest=LONGEST,
    example="payments",
)
OUTCOME: Final = Choice(
    name="outcome", description="Only what was done, or was refused.", words=("done", "refused")
)
SINCE: Final = Moment(
    name="since",
    description="Only what happened at this time or later: ISO 8601 with a UTC offset.",
    example="2026-01-01T00:00:00Z",
)
UNTIL: Final = Moment(
    name="until",
    description="Only what happened at this time or earlier.",
    example="2030-01-01T00:00:00Z",
)
CURSOR: Final = Text(
    name="cursor",
    description="The `nextCursor` of the page before.",
    pattern=AUDIT_CURSOR,
    wrong="has to be the nextCursor of a page",
)
AFTER: Final = Text(
    name="after",
    description="The `cursor` of the last line that is known: those behind it come.",
    pattern=AUDIT_CURSOR,
    wrong="has to be the cursor of a line",
)
_AUDIT_FILTERS: Final = (ACTOR, ACTION, OBJECT, OUTCOME, SINCE, UNTIL)
AUDIT_PARAMETERS: Final = (*_AUDIT_FILTERS, FACTS_LIMIT, CURSOR)
AUDIT_EXPORT_PARAMETERS: Final = (*_AUDIT_FILTERS, AFTER)


_PermissionName = Annotated[
    str, Meta(extra_json_schema={"enum": sorted(permissions.PERMISSION_NAMES)})
]


class ToolUsage(WireAnswer):
    """Calls of tools in the last thirty days; the newest may be missing for a minute."""

    calls: int
    characters: Annotated[int, Meta(description="Of the results, each counted once.")]
    estimated_tokens: Annotated[
        int,
        Meta(description="About what the results take of a model: a quarter of the characters."),
    ]


_NAMES = Meta(
    min_length=1,
    max_length=50,
    description="Each a whole name, or the beginning of names before a `*`.",
    examples=[["payments", "shop-*"]],
)


_Set = Annotated[str, common.describe_text(common.REACHED_SET)]
_Namespace = Annotated[str, common.describe_text(common.REACHED_NAMESPACE)]
_Source = Annotated[str, common.describe_text(common.REACHED_SOURCE)]
_Tool = Annotated[str, common.describe_text(common.REACHED_TOOL)]


class TokenNarrowing(WireAnswer, forbid_unknown_fields=True):
    """Limits of a token: patterns of names. A member that is left out does not limit it."""

    sets: Annotated[list[_Set], _NAMES] | UnsetType = UNSET
    namespaces: Annotated[list[_Namespace], _NAMES] | UnsetType = UNSET
    sources: Annotated[list[_Source], _NAMES] | UnsetType = UNSET
    tools: Annotated[list[_Tool], _NAMES] | UnsetType = UNSET


class Token(WireAnswer):
    """A token, without its value."""

    id: Uuid
    name: str
    owner: Annotated[str, Meta(description="The user for whom it acts.")]
    permissions: list[_PermissionName]
    created_at: Time
    expires_at: Time | None
    last_used_at: Time | None
    usage: ToolUsage | UnsetType = UNSET
    narrowing: TokenNarrowing | UnsetType = UNSET


class MadeToken(Token, kw_only=True):
    """A new token with its value, which is never shown again."""

    value: Annotated[str, Meta(pattern=r"^fbk_[0-9A-Za-z]{46}$")]


class Tokens(WireAnswer):
    """Every token that was not revoked."""

    tokens: list[Token]


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for a token. Without `permissions` it reads the catalog and the facts.

    What the caller's token is narrowed to counts for the new one too, where it says no less.
    """

    name: Annotated[
        str,
        common.describe_text(
            common.TOKEN_NAME,
            "token-name",
            description="Spaces around it are cut off.",
            min_length=1,
            max_length=200,
            examples=["ci"],
        ),
    ]
    permissions: list[_PermissionName] = []
    expires: Annotated[
        str,
        common.describe_text(
            common.LIFETIME,
            description="Days, hours or minutes, such as `90d`, `12h` or `30m`, or `never`.",
        ),
    ] = tokens.DEFAULT_LIFETIME
    narrowing: (
        Annotated[TokenNarrowing, Meta(extra_json_schema={"minProperties": 1})] | UnsetType
    ) = UNSET


async def post_token(request: Request, state: HandlerContext) -> JsonReply[MadeToken]:
    """Create a token for the caller's user; only this answer contains its value."""
    asked: NewToken = await request.json(NewToken)
    caller = request.token
    assert caller is not None
    wanted = (
        permissions.check_permissions(asked.permissions) or permissions.READING & caller.permissions
    )
    if not wanted:
        raise InputError("Name the permissions of the new token: your own token reads nothing.")
    wish = TokenRequest(
        token_rules.check_token_name(asked.name),
        wanted,
        tokens.convert_lifetime(asked.expires),
        _parse_narrowing(asked.narrowing),
    )
    value = tokens.generate_token()
    write = audit.audit_request_writes(request, state, audit.make_token_entry("token.create"), 201)
    token = await write(
        lambda transaction: token_rules.make_token(
            transaction,
            wish,
            digest=tokens.hash_token(value, state.token_key),
            owner=caller.owner,
            held=caller.permissions,
            created_by=caller.id,
            now=state.clock(),
            narrowed=caller.narrowing,
        )
    )
    shown = _render_token(token, TokenUsage())
    return reply(MadeToken(**msgspec.structs.asdict(shown), value=value), 201)


async def get_tokens(request: Request, state: HandlerContext) -> JsonReply[Tokens]:
    """Every token that isn't revoked, with its use in the last 30 days, but without its value."""
    found = await tokens.list_tokens(state.database)
    usage = await state.usage.of([token.id for token in found])
    return reply(Tokens([_render_token(token, usage[token.id]) for token in found]))


async def delete_token(request: Request, state: HandlerContext) -> Reply:
    """Revoke a token; the very next request with it is refused."""
    id_, now = request.parameter("id"), state.clock()
    write = audit.audit_request_writes(request, state, audit.make_token_entry("token.revoke"), 204)
    await write(lambda transaction: tokens.revoke_token(transaction, id_, now))
    return Reply(status=204)


def _render_token(token: StoredToken, usage: TokenUsage) -> Token:
    return Token(
        id=token.id,
        name=token.name,
        owner=token.owner,
        permissions=sorted(token.permissions),
        created_at=iso(token.created_at),
        expires_at=iso_or_none(token.expires_at),
        last_used_at=iso_or_none(token.last_used_at),
        usage=ToolUsage(usage.calls, usage.size, usage.model_tokens),
        narrowing=UNSET
        if token.narrowing is None
        else msgspec.convert(token.narrowing.given, TokenNarrowing),
    )


def _parse_narrowing(asked: TokenNarrowing | UnsetType) -> Narrowing | None:
    """Parse the limits that the body requests for a token; raises InputError."""
    if asked is UNSET:
        return None
    given: dict[str, list[str]] = msgspec.to_builtins(asked)
    if not given:
        raise InputError("narrowing names sets, namespaces, sources or tools, or is left out.")
    return tokens.check_narrowing(given)


async def get_audit_records(request: Request, state: State) -> JsonReply[AuditPage]:
    """Audit records of writes and refusals, newest first.

    `status` is the HTTP status of the answer, 0 for the command line; `token` is the token's id.
    The process that refused a request shows the record at once, others a moment later.
    """
    asked = _parse_audit_filters(request, CURSOR)
    limit = FACTS_LIMIT.of(request) or _AUDIT_PAGE
    await state.refusals.write()
    found, more = await page_audit(state.database, **asked, limit=limit)
    next_cursor = render_audit_cursor(found[-1]) if more else UNSET
    return reply(AuditPage([*map(render_record, found)], next_cursor))


async def export_audit_records(request: Request, state: State) -> JsonReply[AuditLine]:
    """Audit records of writes and refusals as JSON lines, oldest first, from one snapshot.

    Each line is a record with its `cursor`. A record has the time when its write began, so it can
    appear late. To continue after the last line without a gap, set `until` to five minutes ago.
    """
    asked = _parse_audit_filters(request, AFTER)
    await state.refusals.write()
    lines = stream_audit_lines(state.database, **asked)
    return JsonReply(lines, content_type=NDJSON.encode())


def _parse_audit_filters(request: Request, place: Text) -> dict[str, Any]:
    cursor = place.of(request)
    return {
        "actor": ACTOR.of(request),
        "action": ACTION.of(request),
        "object": OBJECT.of(request),
        "outcome": OUTCOME.of(request),
        "since": SINCE.of(request),
        "until": UNTIL.of(request),
        "after": None if cursor is None else split_audit_cursor(cursor),
    }
