"""get-scorecard-rollup: a scorecard by owner, system, domain, kind or label, now and then."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.catalog import ref as refs
from factbook.checks.results import result_age
from factbook.checks.scorecards import scorecard_figures
from factbook.checks.scorecards.scorecard_figures import RollupGroup, ScorecardInEffect
from factbook.clock import DAY
from factbook.errors import InputError, ToolError
from factbook.tools import times
from factbook.tools.checks import arguments as given
from factbook.tools.checks.shown import SCORED, said
from factbook.tools.entities import selection
from factbook.tools.result_schema import AGE, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, Tool, argument, encode

_MOST: Final = 200


class RollupArguments(Struct, forbid_unknown_fields=True):
    """A scorecard, and what to group its entities by."""

    scorecard_id: Annotated[
        str, argument("Id of a scorecard, from get-scorecard-discovery.", "readiness")
    ] = msgspec.field(name="scorecardId")
    by: Annotated[
        str,
        argument(
            "owner, system, domain, kind, or label: and the name of a label.",
            "owner",
            extra_json_schema={"pattern": "^(owner|system|domain|kind|label:.+)$"},
        ),
    ] = "owner"
    group: (
        Annotated[
            str, argument("Owner to begin with; all when left out.", "group:default/payments")
        ]
        | UnsetType
    ) = UNSET
    depth: Annotated[int, argument("Levels of child groups to return.", 1, ge=0, le=5)] = 1
    since: (
        Annotated[
            str,
            argument("Compare with then: a date or how long ago; nothing when left out.", "30d"),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, argument("Most groups to return.", 50, ge=1, le=_MOST)] = 50


async def run(arguments: RollupArguments, context: Context) -> str:
    """Figures of each group, those with the lowest score first."""
    database = context.database
    found = await given.scorecard_in_effect(database, arguments.scorecard_id)
    try:
        group = None
        if arguments.group:
            group = refs.canonical(arguments.group, kind="group")
            await selection.owners_named(database, group)
        groups = await scorecard_figures.rolled_up(
            database, found, arguments.by, group, arguments.depth
        )
    except InputError as error:
        raise ToolError(error.message) from None
    pages = _RollupGroups(found, arguments.limit)
    shown = pages.shown(groups)
    then = await _then(arguments, found, group, context)
    age = await result_age.of_checks(database, found.card.checks, context.now)
    return encode(
        {"scorecardId": found.card.id, "by": arguments.by, **age.render(), "groups": shown}
        | said({"leftOut": pages.left_out, "then": then})
    )


class _RollupGroups:
    """Groups as they are shown, until there are enough of them."""

    def __init__(self, given: ScorecardInEffect, limit: int) -> None:
        self._names = given.names
        self._room = limit
        self.left_out: int | None = None

    def shown(self, groups: tuple[RollupGroup, ...] | list[RollupGroup]) -> list[dict[str, Any]]:
        found = []
        for one in sorted(groups, key=_by_score):
            if self._room == 0:
                self.left_out = (self.left_out or 0) + 1
                continue
            self._room -= 1
            figures = one.tally.render(self._names)
            own = {"levels": {**figures["levels"], "none": figures["noLevel"]}}
            shown = {name: figures[name] for name in ("score", "scored", "total")}
            found.append(
                said({"name": one.name, **shown, **own, "children": self.shown(one.children)})
            )
        return found


def _by_score(one: RollupGroup) -> tuple[float, str]:
    return (101.0 if one.tally.mean is None else one.tally.mean, one.name)


async def _then(
    arguments: RollupArguments, found: ScorecardInEffect, group: str | None, context: Context
) -> dict[str, Any] | None:
    """The figures of the group, or of everybody, at the end of a day."""
    if not isinstance(arguments.since, str):
        return None
    first = times.since(arguments.since, "since", context.now) // DAY
    points = await scorecard_figures.over_time(context.database, found, group, first, context.now)
    return points[0].render() if points else None


_TEXT: Final = {"type": "string"}
_LEVELS: Final = {
    "type": "object",
    "description": "Entities by level; none is below the first.",
    "additionalProperties": {"type": "integer"},
}

TOOL = Tool(
    name="get-scorecard-rollup",
    title="A scorecard by team",
    description=(
        "Returns the levels and the mean score of a scorecard by owner, each with all groups "
        "below it, or by system, domain, kind or label; the lowest score first. Needs a "
        "scorecardId from get-scorecard-discovery. With since it tells what the figures of the "
        "group, or of all, were then. Entities whose facts are missing lower no score; see "
        f"get-check-results. {SIZE_NOTE}; `limit` bounds the groups."
    ),
    arguments=RollupArguments,
    output_schema=record(
        {
            "scorecardId": _TEXT,
            "by": _TEXT,
            **AGE,
            "groups": array(
                record(
                    {
                        "name": text("Left out for entities without one."),
                        "score": {"type": "number", "description": "Mean, in percent."},
                        "scored": SCORED,
                        "total": {"type": "integer"},
                        "levels": _LEVELS,
                        "children": array({"type": "object", "description": "The same."}),
                    },
                    (),
                )
            ),
            "leftOut": {"type": "integer", "description": "Groups beyond the limit."},
            "then": {
                "type": "object",
                "description": "Figures of the first day known since, as of that day.",
            },
        },
        ("scorecardId", "by", "asOf", "groups"),
    ),
    run=run,
    permissions=(CATALOG_READ, CHECK_READ),
)
