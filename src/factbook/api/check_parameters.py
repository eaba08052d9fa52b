"""Parameters of the check, scorecard, result and exemption interfaces."""

import re
from typing import Final

from factbook.api.parameters import (
    AnswerHeader,
    Choice,
    Flag,
    Header,
    Integer,
    Moment,
    PathPart,
    Text,
    Texts,
)
from factbook.catalog import ref as refs
from factbook.checks import state
from factbook.checks.definitions import exemption_store
from factbook.errors import NotFoundError
from factbook.http.requests import Request
from factbook.schemas import common

MOST_CHECKS: Final = 500
CHECK_IDS: Final = Texts(
    name="checkIds",
    description="Only of these checks, separated by commas; of every one when left out.",
    most=MOST_CHECKS,
    example=["has-owner"],
)
RESULT_STATE: Final = Texts(
    name="state",
    description="Only results in this state. Given more than once, in one of them.",
    pattern="|".join(map(re.escape, state.WORDS)),
    words=tuple(state.WORDS),
    most=len(state.WORDS),
    example=["fail"],
)
ONE_ENTITY: Final = Text(
    name="entity",
    description="Only of this entity: `kind:[namespace/]name`.",
    pattern=common.REFERENCE,
    format="entity-reference",
    example="component:default/payments",
)
OWNER: Final = Text(
    name="owner",
    description="Only of entities with this owner; `-` or empty for those without one.",
    longest=640,
    may_be_empty=True,
    format="owner-reference",
    example="group:default/team-a",
)
KIND: Final = Text(
    name="kind", description="Only of entities of this kind.", longest=63, example="component"
)
CHANGED_SINCE: Final = Moment(
    name="changedSince",
    description="Only results that changed at this time or later: ISO 8601 with a UTC offset.",
    example="2026-01-01T00:00:00Z",
)
RESULT_CURSOR: Final = Text(
    name="cursor",
    description="The `nextCursor` of the page before.",
    pattern=f"{common.SOURCE_ID}/[\\s\\S]{{0,640}}",
    wrong="has to be the nextCursor of a page",
)
HISTORY_CURSOR: Final = Text(
    name="cursor",
    description="The `nextCursor` of the page before.",
    pattern="[0-9]{1,15}-[0-9]{1,15}",
    wrong="has to be the nextCursor of a page",
)
RESULT_FILTERS: Final = (CHECK_IDS, RESULT_STATE, OWNER, KIND, CHANGED_SINCE)
# Of scorecards

LEVEL: Final = Text(
    name="level",
    description="Only entities at this level; `none` for those below the first.",
    longest=100,
    example="silver",
)
ENTITY_CURSOR: Final = Integer(
    name="cursor", description="The `nextCursor` of the page before.", most=2**53
)
BY: Final = Text(
    name="by",
    description="`owner`, which it is by default, `system`, `domain`, `kind`, or `label:` and the "
    "name of one.",
    pattern=r"owner|system|domain|kind|label:[\s\S]{1,300}",
    wrong="has to be owner, system, domain, kind, or label: and the name of one",
    example="owner",
)
GROUP: Final = Text(
    name="group",
    description="A group, with all groups below it.",
    longest=640,
    format="group-reference",
    example="group:default/team-a",
)
DEPTH: Final = Integer(
    name="depth", description="Levels of groups below, 1 by default.", most=5, example=2
)
TREND_START: Final = Moment(
    name="from",
    description="The first day: ISO 8601 with a UTC offset. 90 days ago by default.",
    example="2026-01-01T00:00:00Z",
)
STEP: Final = Integer(
    name="step", description="Every so many days, 1 by default.", least=1, most=366, example=7
)
BADGE_TAG: Final = AnswerHeader(
    name="ETag", description="Of the badge; asked with `If-None-Match`, the same one is 304."
)


class DefinitionId(PathPart, frozen=True, kw_only=True):
    """The id of a check or scorecard."""

    pattern: str | None = common.SOURCE_ID
    noun: str

    def of(self, request: Request) -> str:
        text = request.parameter(self.name)
        if not re.fullmatch(common.SOURCE_ID, text):
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
    pattern=common.IF_MATCH,
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
    name="state",
    description="Only exemptions in this state.",
    words=exemption_store.EXEMPTION_STATES,
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


def parse_if_match_tags(request: Request) -> frozenset[str] | None:
    """Parse the tags in If-Match; None without the header."""
    text = IF_MATCH.of(request)
    if text is None:
        return None
    return frozenset(one.strip().removeprefix("W/").strip('"') for one in text.split(","))


def parse_owners(request: Request) -> list[str]:
    """Parse the requested owner: '' for entities without owner, an empty list for any."""
    owner = OWNER.of(request)
    if owner is None:
        return []
    return ["" if owner in {"", "-"} else refs.canonicalize_ref(owner, kind="group")]
