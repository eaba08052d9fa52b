"""Tokens and records of the audit log, as the access interface shows them."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas import patterns
from factbook.schemas.common import Time, Uuid, Wire, WireAnswer

PERMISSIONS = (
    "access.token.manage",
    "audit.read",
    "catalog.entity-set.write",
    "catalog.entity.read",
    "events.read",
    "operations.manage",
    "own.write",
    "scim.write",
    "tech-insights.check.read",
    "tech-insights.check.write",
    "tech-insights.data-source.read",
    "tech-insights.data-source.write",
    "tech-insights.exemption.decide",
    "tech-insights.exemption.request",
    "tech-insights.fact.write",
    "tech-insights.scorecard.write",
    "tech-insights.source.run",
)
PermissionName = Annotated[str, Meta(extra_json_schema={"enum": [*PERMISSIONS]})]


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


_Set = Annotated[str, patterns.describe_text(patterns.REACHED_SET)]
_Namespace = Annotated[str, patterns.describe_text(patterns.REACHED_NAMESPACE)]
_Source = Annotated[str, patterns.describe_text(patterns.REACHED_SOURCE)]
_Tool = Annotated[str, patterns.describe_text(patterns.REACHED_TOOL)]


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
    permissions: list[PermissionName]
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


class AuditRecord(Wire):
    """Something that was done, or was refused."""

    id: str
    at: Time
    actor: str
    action: str
    object: str
    outcome: str
    status: int
    address: str
    token: str
    detail: dict[str, Any]
    grant: Annotated[
        str,
        Meta(
            description="What allowed it: `role`, with the group that gave the role if one did, "
            "`token`, or `group` with the one that owns what was written. Empty for what was "
            "refused, and where nothing had to allow it."
        ),
    ]


class AuditLine(AuditRecord):
    """Something that was done, or was refused, on a line of its own."""

    cursor: str


class AuditPage(Wire):
    """Records, newest first."""

    records: list[AuditRecord]
    next_cursor: str | UnsetType = UNSET
