"""Arguments that several tools of checks take."""

from collections.abc import Awaitable
from typing import Annotated, TypeVar

from msgspec import Meta, UnsetType

from factbook.catalog.store import hierarchy
from factbook.checks import state
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.checks.scorecards import scorecard_figures
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.errors import InputError, NotFoundError, ToolError
from factbook.storage import Database
from factbook.tools.entities import selection
from factbook.tools.tool import argument

T = TypeVar("T")

DISCOVER = "Call get-scorecard-discovery for the ids of checks and scorecards."

ScorecardId = (
    Annotated[
        str,
        argument(
            "Id of a scorecard, from get-scorecard-discovery; any when left out.", "readiness"
        ),
    ]
    | UnsetType
)
OwnerGroup = (
    Annotated[
        str,
        argument(
            "Owner of the entities, a group with all groups below it; any when left out.",
            "group:default/payments",
            min_length=1,
        ),
    ]
    | UnsetType
)
States = (
    Annotated[
        # `states_checked` says more than a decoder would.
        list[Annotated[str, Meta(extra_json_schema={"enum": list(state.WORDS)})]],
        argument(
            f"States to return, of {', '.join(state.WORDS)}; see the description when left out.",
            ["fail", "unknown"],
            max_length=5,
        ),
    ]
    | UnsetType
)


async def existing(found: Awaitable[T]) -> T:
    """The thing found; raises ToolError that says where ids are from if there is none."""
    try:
        return await found
    except NotFoundError as error:
        raise ToolError(f"{error.message} {DISCOVER}") from None


async def scorecard_in_effect(database: Database, scorecard_id: str) -> ScorecardInEffect:
    """The scorecard in effect with this id."""
    return await existing(scorecard_figures.in_effect(database, scorecard_id))


def states_checked(given: list[str]) -> list[str]:
    """The words of states; raises ToolError for another one."""
    for word in given:
        if word not in state.WORDS:
            raise ToolError(f'There is no state "{word}". There are: {", ".join(state.WORDS)}.')
    return given


async def owners_of(database: Database, owner: str | UnsetType) -> list[str]:
    """The references of an owner and of all groups below it; none for any owner.

    Raises ToolError if nobody is called so.
    """
    if not isinstance(owner, str):
        return []
    try:
        first, *_ = await selection.owners_named(database, owner)
    except InputError as error:
        raise ToolError(f"owner: {error.message}") from None
    return sorted(GroupHierarchy(await hierarchy.group_parents(database)).within(first))
