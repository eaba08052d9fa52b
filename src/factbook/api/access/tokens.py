"""Managing tokens over HTTP."""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from factbook.auth import permissions, token_reach, token_rules, tokens
from factbook.auth.token_reach import Narrowing
from factbook.auth.token_rules import TokenRequest
from factbook.auth.token_usage import TokenUsage
from factbook.auth.tokens import StoredToken
from factbook.clock import iso, iso_or_none
from factbook.errors import InputError
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas import patterns
from factbook.schemas.access import (
    MadeToken,
    PermissionName,
    Token,
    TokenNarrowing,
    Tokens,
    ToolUsage,
)


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for a token. Without `permissions` it reads the catalog and the facts.

    What the caller's token is narrowed to counts for the new one too, where it says no less.
    """

    name: Annotated[
        str,
        patterns.describe_text(
            patterns.TOKEN_NAME,
            "token-name",
            description="Spaces around it are cut off.",
            min_length=1,
            max_length=200,
            examples=["ci"],
        ),
    ]
    permissions: list[PermissionName] = []
    expires: Annotated[
        str,
        patterns.describe_text(
            patterns.LIFETIME,
            description="Days, hours or minutes, such as `90d`, `12h` or `30m`, or `never`.",
        ),
    ] = tokens.DEFAULT_LIFETIME
    narrowing: (
        Annotated[TokenNarrowing, msgspec.Meta(extra_json_schema={"minProperties": 1})] | UnsetType
    ) = UNSET


async def create(request: Request, state: HandlerContext) -> JsonReply[MadeToken]:
    """Make a token for the caller's user; its value is in this answer and never again."""
    asked: NewToken = await request.json(NewToken)
    caller = request.token
    assert caller is not None
    wanted = permissions.checked(asked.permissions) or permissions.READING & caller.permissions
    if not wanted:
        raise InputError("Name the permissions of the new token: your own token reads nothing.")
    wish = TokenRequest(
        token_rules.name_checked(asked.name),
        wanted,
        tokens.lifetime(asked.expires),
        _narrowing(asked.narrowing),
    )
    value = tokens.generate()
    write = audit.writing(request, state, audit.of_token("token.create"), 201)
    token = await write(
        lambda transaction: token_rules.make(
            transaction,
            wish,
            digest=tokens.digest(value, state.token_key),
            owner=caller.owner,
            held=caller.permissions,
            created_by=caller.id,
            now=state.clock(),
            narrowed=caller.narrowing,
        )
    )
    shown = _shown(token, TokenUsage())
    return reply(MadeToken(**msgspec.structs.asdict(shown), value=value), 201)


async def list_all(request: Request, state: HandlerContext) -> JsonReply[Tokens]:
    """Every token that was not revoked, without its value, and its use in the last 30 days."""
    found = await tokens.listed(state.database)
    usage = await state.usage.of([token.id for token in found])
    return reply(Tokens([_shown(token, usage[token.id]) for token in found]))


async def revoke(request: Request, state: HandlerContext) -> Reply:
    """Revoke a token for the very next request."""
    id_, now = request.parameter("id"), state.clock()
    write = audit.writing(request, state, audit.of_token("token.revoke"), 204)
    await write(lambda transaction: tokens.revoke(transaction, id_, now))
    return Reply(status=204)


def _shown(token: StoredToken, usage: TokenUsage) -> Token:
    return Token(
        id=token.id,
        name=token.name,
        owner=token.owner,
        permissions=sorted(token.permissions),
        created_at=iso(token.created_at),
        expires_at=iso_or_none(token.expires_at),
        last_used_at=iso_or_none(token.last_used_at),
        usage=ToolUsage(usage.calls, usage.size, usage.model_tokens),
        narrowing=UNSET if token.narrowing is None else _shown_narrowing(token.narrowing),
    )


def _narrowing(asked: TokenNarrowing | UnsetType) -> Narrowing | None:
    """Limits of the token that the body asks for; raises InputError."""
    if asked is UNSET:
        return None
    given: dict[str, list[str]] = msgspec.to_builtins(asked)
    if not given:
        raise InputError("narrowing names sets, namespaces, sources or tools, or is left out.")
    return token_reach.checked(given)


def _shown_narrowing(found: Narrowing) -> TokenNarrowing:
    return msgspec.convert(found.given, TokenNarrowing)
