"""Parameters of the interface of checks, scorecards, their results and exemptions."""

import re
from typing import Final

from factbook.api.openapi.parameter_types import (
    AnswerHeader,
    Choice,
    Flag,
    Header,
    Integer,
    PathPart,
    Text,
)
from factbook.checks.exemptions import exemption
from factbook.errors import NotFoundError
from factbook.http.requests import Request
from factbook.schemas import patterns


class DefinitionId(PathPart, frozen=True, kw_only=True):
    """The id of a check or scorecard."""

    pattern: str | None = patterns.SOURCE_ID
    noun: str

    def of(self, request: Request) -> str:
        text = request.parameter(self.name)
        if not re.fullmatch(patterns.SOURCE_ID, text):
            raise NotFoundError(f'There is no {self.noun} "{text}".')
        return text


CHECK_ID: Final = DefinitionId(
    name="id",
    description="The check's id.",
    example="has-owner",
    format="check-id",
    noun="check",
)
SCORECARD_ID: Final = DefinitionId(
    name="id",
    description="The scorecard's id.",
    example="readiness",
    format="scorecard-id",
    noun="scorecard",
)
ETAG: Final = AnswerHeader(
    name="ETag", description="Of all that its author can change, between quotes."
)
IF_MATCH: Final = Header(
    name="If-Match",
    description="The `ETag` to build on; `*` means any. Refuses with 412 when it was changed "
    "since.",
    pattern=patterns.IF_MATCH,
    wrong="has to be the ETag of an answer, or *",
)
PUBLISH: Final = Flag(name="publish", description="Publishes it in the same transaction.")
PAGE_LIMIT: Final = Integer(
    name="limit",
    description="Most items on a page, 100 by default.",
    least=1,
    most=500,
    example=20,
)
EXPAND: Final = Text(
    name="expand",
    description="Taken from clients of Roadie, and changes nothing: every answer is whole.",
    example="rule",
)
ID_CURSOR: Final = Text(
    name="cursor", description="The `nextCursor` of the page before.", longest=100
)
EXEMPTION_ID: Final = PathPart(
    name="id", description="The exemption's id.", example="019a7c1f2b3d5e6f", format="exemption-id"
)
EXEMPTION_STATE: Final = Choice(
    name="state", description="Only exemptions in this state.", words=exemption.STATES
)
EXEMPTION_ENTITY: Final = Text(
    name="entity",
    description="Only of this entity: `kind:[namespace/]name`.",
    pattern=patterns.REFERENCE,
    format="entity-reference",
    example="component:default/payments",
)
EXEMPTION_CHECK: Final = Text(
    name="check", description="Only from this check.", longest=100, example="has-owner"
)
EXEMPTION_SCORECARD: Final = Text(
    name="scorecard", description="Only from this scorecard.", longest=100, example="readiness"
)
EXEMPTION_CURSOR: Final = Text(
    name="cursor",
    description="The `nextCursor` of the page before.",
    pattern="[0-9]{1,15}-[0-9a-f]{1,40}",
    wrong="has to be the nextCursor of a page",
)


def tags(request: Request) -> frozenset[str] | None:
    """The tags that If-Match names; None without one."""
    text = IF_MATCH.of(request)
    if text is None:
        return None
    return frozenset(one.strip().removeprefix("W/").strip('"') for one in text.split(","))
