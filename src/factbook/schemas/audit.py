"""Records of the audit log as they are read."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas.common import Time, Wire


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
