"""get-changed-check-results: results that became others since a time, newest first."""

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.catalog import ref as refs
from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.checks.states import change_store
from factbook.checks.states.change_store import Change, ChangeRange
from factbook.checks.versions.check_store import check_store
from factbook.clock import iso
from factbook.errors import InputError, ToolError
from factbook.tools import times
from factbook.tools.checks import arguments as given
from factbook.tools.checks.arguments import ScorecardId
from factbook.tools.checks.shown import said
from factbook.tools.pages import EntryPage
from factbook.tools.result_schema import NEXT_CURSOR, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, Tool, argument, encode, unknown_entity

_CURSOR: Final = re.compile(r"(\d{1,16})-(\d{1,18})", re.ASCII)


class ChangedResultsArguments(Struct, forbid_unknown_fields=True):
    """A time, and which of the changes since."""

    since: Annotated[
        str, argument("A date or time, or how long ago, such as 24h or 7d.", "7d", min_length=1)
    ]
    scorecard_id: ScorecardId = msgspec.field(default=UNSET, name="scorecardId")
    check_id: (
        Annotated[str, argument("Id of a check; any when left out.", "covered")] | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    entity_ref: (
        Annotated[
            str,
            argument("One entity; any when left out.", "component:default/payments-api"),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="entityRef")
    limit: Annotated[int, argument("Most changes to return.", 50, ge=1, le=500)] = 50
    cursor: (
        Annotated[str, argument("nextCursor of the page before.", "1795262400000-12")] | UnsetType
    ) = UNSET


async def run(arguments: ChangedResultsArguments, context: Context) -> str:
    """A page of changes."""
    wanted = await _range(arguments, context)
    page, last = EntryPage(arguments.limit), None
    found = await change_store.between(context.database, wanted, arguments.limit + 1)
    names = await collectable.refs_of_ids(context.database, {one.entity_id for one in found})
    for one in found:
        # An entity that is gone has no reference.
        if one.entity_id in names and not page.add(_shown(one, names[one.entity_id])):
            break
        last = one
    more = last is not None and last is not found[-1]
    cursor = f',"nextCursor":"{last.at}-{last.id}"' if last is not None and more else ""
    return f'{{"changes":[{",".join(page.texts)}]{cursor}}}'


async def _range(arguments: ChangedResultsArguments, context: Context) -> ChangeRange:
    since = times.since(arguments.since, "since", context.now)
    before = _place(arguments.cursor) if isinstance(arguments.cursor, str) else None
    entity_id = None
    if isinstance(arguments.entity_ref, str):
        entity_id = await _entity_id(arguments.entity_ref, context)
    return ChangeRange(since, before, await _checks(arguments, context), entity_id)


async def _entity_id(entity_ref: str, context: Context) -> int:
    try:
        ref = refs.canonical(entity_ref, kind="component")
    except InputError as error:
        raise ToolError(f"entityRef: {error.message}") from None
    found = await collectable.id_of(context.database, ref)
    if found is None:
        raise await unknown_entity(context.database, ref)
    return found


async def _checks(arguments: ChangedResultsArguments, context: Context) -> list[str] | None:
    """The ids of the wanted checks; None for any."""
    ids: set[str] | None = None
    if isinstance(arguments.scorecard_id, str):
        found = await given.scorecard_in_effect(context.database, arguments.scorecard_id)
        ids = set(found.card.checks)
    if isinstance(arguments.check_id, str):
        stored = await given.existing(check_store.existing(context.database, arguments.check_id))
        ids = {stored.id} if ids is None else ids & {stored.id}
    return None if ids is None else sorted(ids)


def _place(cursor: str) -> tuple[int, int]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ToolError(
            "cursor is not the nextCursor of an earlier page. Leave it out to start over."
        )
    return int(match[1]), int(match[2])


def _shown(one: Change, ref: str) -> dict[str, Any]:
    return said(
        {
            "at": iso(one.at),
            "check": one.check_id,
            "entityRef": ref,
            "from": state.word(one.before),
            "to": state.word(one.after),
            "why": one.why if len(encode(one.why)) < 400 else None,
        }
    )


_TEXT: Final = {"type": "string"}

TOOL = Tool(
    name="get-changed-check-results",
    title="Changed results",
    description=(
        "Returns which results of checks became others since a time, newest first: from which "
        "state to which, when, and what was written then. scorecardId, checkId and entityRef "
        "narrow them; ids are from get-scorecard-discovery. To unknown means that a fact went "
        f"missing, not that something broke. {SIZE_NOTE}; ask for pages with `limit` and `cursor`."
    ),
    arguments=ChangedResultsArguments,
    output_schema=record(
        {
            "changes": array(
                record(
                    {
                        "at": _TEXT,
                        "check": _TEXT,
                        "entityRef": _TEXT,
                        "from": text("State before."),
                        "to": text("State after."),
                        "why": {"type": "object", "description": "What was written."},
                    },
                    ("at", "check", "entityRef", "from", "to"),
                )
            ),
            "nextCursor": NEXT_CURSOR,
        },
        ("changes",),
    ),
    run=run,
    permissions=(CATALOG_READ, CHECK_READ),
)
