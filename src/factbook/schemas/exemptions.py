"""Bodies and answers of the interface of exemptions."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from factbook.schemas.checks import CheckId
from factbook.schemas.common import AnyRef, Ref, Text, Time, Wire, WireAnswer, known
from factbook.schemas.scorecards import ScorecardId

_OptionalText = str | UnsetType | None
_DAY = "A date, the whole of which is meant, or a date and time with a UTC offset."


class NewExemption(Wire):
    """An exemption as it is asked for, from a check or a scorecard."""

    entity: AnyRef
    reason: Text
    check: CheckId | UnsetType | None = UNSET
    scorecard: ScorecardId | UnsetType | None = UNSET
    link: Annotated[_OptionalText, Meta(description="Such as a ticket.")] = UNSET
    from_: Annotated[_OptionalText, Meta(description=f"{_DAY} Now when left out.")] = field(
        default=UNSET, name="from"
    )
    until: Annotated[
        _OptionalText,
        Meta(
            description=f"{_DAY} Required unless scorecards allow to do without, and within 365"
            " days of the start unless they say otherwise."
        ),
    ] = UNSET


class NewDecision(Wire, forbid_unknown_fields=True):
    """Comment on a decision."""

    comment: Annotated[str, Meta(max_length=2_000)] | None = None


class ShownExemption(WireAnswer):
    """An exemption."""

    id: str
    entity: Ref
    reason: str
    state: Annotated[str, known("requested", "approved", "denied", "revoked", "expired")]
    requested_by: str
    requested_at: Time
    check: str | None = None
    scorecard: str | None = None
    link: str | None = None
    from_: Time | None = field(default=None, name="from")
    until: Time | None = None
    decided_by: str | None = None
    decided_at: Time | None = None
    comment: str | None = None


class Exemptions(WireAnswer):
    """Exemptions, newest first."""

    exemptions: list[ShownExemption]
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None
