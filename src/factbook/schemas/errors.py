"""The form of every refusal."""

from typing import Annotated

from msgspec import Meta

from factbook.schemas.common import Ref, WireAnswer


class Problem(WireAnswer):
    """A problem in a part of the body."""

    path: str
    message: str


class Conflict(WireAnswer):
    """An entity that another set holds."""

    entity_ref: Ref
    owner: Annotated[
        str,
        Meta(
            description="The set, or `no set`; `another owner` for a token that may not read the "
            "catalog."
        ),
    ]


class ErrorDetails(WireAnswer):
    """Name, message and details of an error."""

    name: Annotated[str, Meta(description="The kind of error, such as `InputError`.")]
    message: Annotated[str, Meta(description="What is wrong and what to do about it.")]
    problems: list[Problem] | None = None
    conflicts: list[Conflict] | None = None
    removals: Annotated[int, Meta(description="How many entities a push would remove.")] | None = (
        None
    )
    revision: Annotated[int, Meta(description="The set's present revision.")] | None = None


class ErrorRequest(WireAnswer):
    """The request that was refused."""

    method: str
    url: str


class ErrorStatus(WireAnswer):
    """The status of the refusal."""

    status_code: int


class ErrorAnswer(WireAnswer):
    """Any refusal."""

    error: ErrorDetails
    request: ErrorRequest
    response: ErrorStatus
