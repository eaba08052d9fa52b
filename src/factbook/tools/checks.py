"""Results of checks, previews of changed checks, and requests for exemptions."""

import asyncio
import re
from collections import Counter
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.audit.trail import audit_writes
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, EXEMPTION_REQUEST, SOURCE_READ
from factbook.auth.tokens import Grant
from factbook.catalog import ref as refs
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store import stored_entities
from factbook.checks import scorecard_figures, state, trials
from factbook.checks.definitions import definition_writes, exemption_store, scorecard
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.definitions.definition_writes import ExemptionCaller
from factbook.checks.definitions.exemption_store import Exemption, ExemptionFilter
from factbook.checks.results import entity_evaluation, level_store, result_queries, state_store
from factbook.checks.results.grader import decode_level
from factbook.checks.results.result_queries import (
    CheckResult,
    EntityResults,
    ExplainedRow,
    ResultFilter,
    ResultPlace,
)
from factbook.checks.results.state_store import Change, ChangeRange, StateCounts
from factbook.checks.rules import language, rule_evaluation
from factbook.checks.rules.check_definition import Check, parse_stored_check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.scorecard_figures import ScorecardInEffect
from factbook.checks.trials import PreviewScope
from factbook.clock import iso, iso_or_none
from factbook.errors import ConflictError, InputError, NotAllowedError, NotFoundError, ToolError
from factbook.facts import store
from factbook.tools import check_common, tool
from factbook.tools.check_common import (
    COUNTS,
    DISCOVER,
    EVIDENCE,
    STANDING,
    OwnerGroup,
    ScorecardId,
    States,
    decode_ref_place,
    drop_empty,
    encode_ref_place,
    render_counts,
    render_explanation,
    render_score,
    shorten_text,
)
from factbook.tools.tool import (
    AGE,
    NEXT_CURSOR,
    SIZE_NOTE,
    Context,
    EntryPage,
    NameOrRefArguments,
    Tool,
    build_unknown_entity_error,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    encode_result,
)

_FAILING: Final = ["fail"]
_MOST: Final = 500
_OPEN_STATES: Final = ["fail", "unknown"]
_MOST_STEPS: Final = 10
_MOST_EXEMPTIONS: Final = 50
_CHANGE_CURSOR: Final = re.compile(r"(\d{1,16})-(\d{1,18})", re.ASCII)


class CheckResultsArguments(Struct, forbid_unknown_fields=True):
    """A check or a scorecard, and which of its entities."""

    check_id: (
        Annotated[str, describe_argument("Id of a check; give this or scorecardId.", "covered")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    scorecard_id: (
        Annotated[str, describe_argument("Id of a scorecard; give this or checkId.", "readiness")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="scorecardId")
    states: States = UNSET
    level: (
        Annotated[
            str,
            describe_argument(
                "Level of the scorecard, none for below the first; any when left out.", "bronze"
            ),
        ]
        | UnsetType
    ) = UNSET
    owner: OwnerGroup = UNSET
    kind: (
        Annotated[str, describe_argument("Kind of the entities; any when left out.", "component")]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, describe_argument("Most entities to return.", 50, ge=1, le=_MOST)] = 50
    cursor: (
        Annotated[
            str,
            describe_argument("nextCursor of the page before.", "component:default/payments-api"),
        ]
        | UnsetType
    ) = UNSET


async def run_check_results(arguments: CheckResultsArguments, context: Context) -> str:
    """A page of entities, and the counts of all."""
    if (arguments.check_id is UNSET) is (arguments.scorecard_id is UNSET):
        raise ToolError(f"Give exactly one of checkId and scorecardId. {DISCOVER}")
    of = _answer_for_check if isinstance(arguments.check_id, str) else _answer_for_scorecard
    return encode_result(await of(arguments, context))


async def _answer_for_check(arguments: CheckResultsArguments, context: Context) -> dict[str, Any]:
    database, id_ = context.database, str(arguments.check_id)
    stored = await check_common.require_existing(check_store.existing(database, id_))
    if stored.slot is None:
        raise ToolError(f"The check {id_} has no results yet. {DISCOVER}")
    states = check_common.require_states(
        _FAILING if arguments.states is UNSET else arguments.states
    )
    owners = await check_common.list_owner_groups(database, arguments.owner)
    kind = arguments.kind.lower() if isinstance(arguments.kind, str) else None
    after = "" if arguments.cursor is UNSET else decode_ref_place(arguments.cursor, ":/")
    wanted = ResultFilter(states, owners, kind)
    page = await result_queries.read_result_page(
        database, [id_], wanted, ResultPlace(id_, after), arguments.limit
    )
    rows = [row for _, row in page.rows]
    check = parse_stored_check(stored.published)
    shown = await result_queries.explain_rows(database, check, rows, context.now)
    if owners:
        found = await state_store.count_of_owners(database, owners)
    else:
        found = await state_store.count_totals(database, [id_])
    age = await result_queries.read_age_of_checks(database, [id_], context.now)
    return {
        "checkId": id_,
        **age.render(),
        "counts": render_counts(found.get(id_, StateCounts())),
        "entities": [_render_entity_row(one, values=context.reads_values) for one in shown],
    } | drop_empty({"nextCursor": encode_ref_place(page.next.ref) if page.next else None})


def _render_entity_row(one: ExplainedRow, *, values: bool) -> dict[str, Any]:
    told = one.explanation
    return drop_empty(
        {
            "entityRef": one.row.ref,
            "owner": one.row.owner,
            "state": state.name_state(one.row.state),
            "since": iso_or_none(one.since),
            "message": shorten_text(told.message) if told and values else None,
            "reasons": told.reasons if told and one.row.state == state.UNKNOWN else None,
            "stale": (told.stale or None) if told else None,
        }
    )


async def _answer_for_scorecard(
    arguments: CheckResultsArguments, context: Context
) -> dict[str, Any]:
    database = context.database
    found = await check_common.find_scorecard_in_effect(database, str(arguments.scorecard_id))
    owners = await check_common.list_owner_groups(database, arguments.owner)
    level = arguments.level if isinstance(arguments.level, str) else None
    try:
        wanted = scorecard_figures.filter_by_level(found.card, level, owners)
    except InputError as error:
        raise ToolError(error.message) from None
    tally = await level_store.count_all_levels(database, found.slot, owners or None)
    page = await scorecard_figures.read_ranked_page(
        database, found, wanted, _read_ref_after(arguments), arguments.limit
    )
    figures = tally.render(found.names)
    age = await result_queries.read_age_of_checks(database, found.card.checks, context.now)
    return {
        "scorecardId": found.card.id,
        **age.render(),
        "counts": {**figures["levels"], "none": figures["noLevel"]},
        "entities": [
            {"entityRef": one.ref, **render_score(found, one.graded)} for one in page.entities
        ],
    } | drop_empty({"nextCursor": None if page.next is None else str(page.next)})


def _read_ref_after(arguments: CheckResultsArguments) -> int:
    if arguments.cursor is UNSET:
        return 0
    place = decode_ref_place(arguments.cursor, "")
    if not (place.isascii() and place.isdigit() and len(place) < 19):
        decode_ref_place("", ":")
    return int(place)


class EntityResultsArguments(NameOrRefArguments, forbid_unknown_fields=True):
    """An entity, and which of its results."""

    scorecard_id: ScorecardId = msgspec.field(default=UNSET, name="scorecardId")
    states: States = UNSET
    limit: Annotated[int, describe_argument("Most results to return.", 20, ge=1, le=200)] = 20


async def run_entity_results(arguments: EntityResultsArguments, context: Context) -> str:
    """An entity's scorecard standings, counts by state, and results in the requested states."""
    ref, database = arguments.ref(), context.database
    words = check_common.require_states(
        _OPEN_STATES if arguments.states is UNSET else arguments.states
    )
    cards = await _list_scorecards(arguments, context)
    only = cards[0].card.checks if arguments.scorecard_id is not UNSET else frozenset[str]()
    found = await result_queries.read_entity_results(database, ref, context.now, only=only)
    if found is None:
        raise await build_unknown_entity_error(database, ref)
    levels = await level_store.read_entity_levels(database, found.entity_id)
    graded = [(one, decode_level(levels, one.slot)) for one in cards]
    about = [one for one in found.results if one.state != state.OUT]
    wanted = [one for one in found.results if state.name_state(one.state) in words]
    shown = wanted[: arguments.limit]
    # By check; exemptions from a whole scorecard are under None.
    exempt: dict[str | None, Exemption] = {}
    if any(_is_exempt(result) for result in shown):
        approved = ExemptionFilter("approved", found.ref, None, None)
        exemptions = await exemption_store.list_exemptions(database, approved, _MOST_EXEMPTIONS)
        exempt = {each.check: each for each in reversed(exemptions) if each.holds(context.now)}
    age = await result_queries.read_age_of_checks(
        database, [one.check.id for one in about], context.now
    )
    answer = {
        "entityRef": ref,
        "owner": found.owner,
        "scorecards": [
            {"id": card.card.id, **render_score(card, own)}
            for card, own in graded
            if own is not None
        ],
        **age.render(),
        "counts": Counter(state.name_state(one.state) for one in about),
        "results": [
            _render_entity_result(one, exempt, values=context.reads_values) for one in shown
        ],
        "totalCount": len(wanted),
        "nextSteps": _list_steps(cards[0], found, context) if only else None,
    }
    return encode_result({"results": [], **drop_empty(answer)})


async def _list_scorecards(
    arguments: EntityResultsArguments, context: Context
) -> list[ScorecardInEffect]:
    if isinstance(arguments.scorecard_id, str):
        return [
            await check_common.find_scorecard_in_effect(context.database, arguments.scorecard_id)
        ]
    return [
        ScorecardInEffect(scorecard.parse_scorecard(one.published), one.slot)
        for one in await scorecard_store.everything(context.database)
        if one.slot is not None and one.published is not None
    ]


def _is_exempt(result: CheckResult) -> bool:
    return bool(result.state & state.EXEMPT)


def _render_entity_result(
    result: CheckResult, exempt: dict[str | None, Exemption], *, values: bool
) -> dict[str, Any]:
    held = exempt.get(result.check.id) or exempt.get(None) if _is_exempt(result) else None
    return drop_empty(
        {
            "check": result.check.id,
            "title": result.check.title,
            "state": state.name_state(result.state),
            "since": iso_or_none(result.since),
            "advisory": result.check.severity == "advisory" or None,
            "flapping": result.is_flapping or None,
            "stale": result.is_stale or None,
            **render_explanation(result.explanation, values=values),
            "exemption": None
            if held is None
            else drop_empty(
                {
                    "id": held.id,
                    "reason": shorten_text(held.reason),
                    "until": iso_or_none(held.until),
                }
            ),
        }
    )


def _list_steps(
    card: ScorecardInEffect, found: EntityResults, context: Context
) -> list[dict[str, Any]]:
    steps = scorecard_figures.list_next_steps(card.card, found.results, context.now)
    return [
        drop_empty({"check": step.check, "level": card.names.get(step.rank)})
        for step, _ in steps[:_MOST_STEPS]
    ]


class ChangedResultsArguments(Struct, forbid_unknown_fields=True):
    """A time, and which of the changes since."""

    since: Annotated[
        str,
        describe_argument(
            "A date or time, or how long ago, such as 24h or 7d.", "7d", min_length=1
        ),
    ]
    scorecard_id: ScorecardId = msgspec.field(default=UNSET, name="scorecardId")
    check_id: (
        Annotated[str, describe_argument("Id of a check; any when left out.", "covered")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    entity_ref: (
        Annotated[
            str,
            describe_argument("One entity; any when left out.", "component:default/payments-api"),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="entityRef")
    limit: Annotated[int, describe_argument("Most changes to return.", 50, ge=1, le=500)] = 50
    cursor: (
        Annotated[str, describe_argument("nextCursor of the page before.", "1795262400000-12")]
        | UnsetType
    ) = UNSET


async def run_changed_results(arguments: ChangedResultsArguments, context: Context) -> str:
    """A page of changes."""
    wanted = await _build_change_range(arguments, context)
    page, last = EntryPage(arguments.limit), None
    found = await state_store.list_changes_between(context.database, wanted, arguments.limit + 1)
    names = await stored_entities.read_refs_of_ids(
        context.database, {one.entity_id for one in found}
    )
    for one in found:
        # A removed entity has no reference.
        if one.entity_id in names and not page.add(_render_change(one, names[one.entity_id])):
            break
        last = one
    more = last is not None and last is not found[-1]
    cursor = f',"nextCursor":"{last.at}-{last.id}"' if last is not None and more else ""
    return f'{{"changes":[{",".join(page.texts)}]{cursor}}}'


async def _build_change_range(arguments: ChangedResultsArguments, context: Context) -> ChangeRange:
    since = tool.parse_since(arguments.since, "since", context.now)
    before = _decode_change_cursor(arguments.cursor) if isinstance(arguments.cursor, str) else None
    entity_id = None
    if isinstance(arguments.entity_ref, str):
        entity_id = await _find_entity_id(arguments.entity_ref, context)
    return ChangeRange(since, before, await _list_wanted_checks(arguments, context), entity_id)


async def _find_entity_id(entity_ref: str, context: Context) -> int:
    try:
        ref = refs.canonicalize_ref(entity_ref, kind="component")
    except InputError as error:
        raise ToolError(f"entityRef: {error.message}") from None
    found = await stored_entities.read_entity_id(context.database, ref)
    if found is None:
        raise await build_unknown_entity_error(context.database, ref)
    return found


async def _list_wanted_checks(
    arguments: ChangedResultsArguments, context: Context
) -> list[str] | None:
    """The ids of the requested checks; None for all."""
    ids: set[str] | None = None
    if isinstance(arguments.scorecard_id, str):
        found = await check_common.find_scorecard_in_effect(
            context.database, arguments.scorecard_id
        )
        ids = set(found.card.checks)
    if isinstance(arguments.check_id, str):
        stored = await check_common.require_existing(
            check_store.existing(context.database, arguments.check_id)
        )
        ids = {stored.id} if ids is None else ids & {stored.id}
    return None if ids is None else sorted(ids)


def _decode_change_cursor(cursor: str) -> tuple[int, int]:
    match = _CHANGE_CURSOR.fullmatch(cursor)
    if match is None:
        raise ToolError(
            "cursor is not the nextCursor of an earlier page. Leave it out to start over."
        )
    return int(match[1]), int(match[2])


def _render_change(one: Change, ref: str) -> dict[str, Any]:
    return drop_empty(
        {
            "at": iso(one.at),
            "check": one.check_id,
            "entityRef": ref,
            "from": state.name_state(one.before),
            "to": state.name_state(one.after),
            "why": one.why if len(encode_result(one.why)) < 400 else None,
        }
    )


_TEXT: Final = {"type": "string"}

CHECK_RESULTS_TOOL = Tool(
    name="get-check-results",
    title="Entities of a check or scorecard",
    description=(
        "Returns the entities for which a check fails, or has the states given, with since when "
        "and why it is unknown; of a scorecard its entities with level, score and coverage. Give "
        "exactly one of checkId and scorecardId, from get-scorecard-discovery. counts are of all "
        "entities, or of the owner's. A page may hold few while there is a nextCursor. "
        f"{SIZE_NOTE}; use `limit` and `cursor`."
    ),
    arguments=CheckResultsArguments,
    output_schema=describe_record(
        {
            "checkId": _TEXT,
            "scorecardId": _TEXT,
            **AGE,
            "counts": COUNTS
            | {"description": "All entities, or the owner's, by state; of a scorecard by level."},
            "entities": describe_list(
                describe_record(
                    {
                        "entityRef": _TEXT,
                        "owner": _TEXT,
                        "state": _TEXT,
                        "since": _TEXT,
                        "message": _TEXT,
                        "reasons": describe_list(describe_text_member("Why a fact is missing.")),
                        "stale": {"type": "boolean"},
                        **STANDING,
                    },
                    ("entityRef",),
                )
            ),
            "nextCursor": NEXT_CURSOR,
        },
        ("asOf", "counts", "entities"),
    ),
    run=run_check_results,
    permissions=(CATALOG_READ, CHECK_READ),
)
_FLAG: Final = {"type": "boolean"}

ENTITY_RESULTS_TOOL = Tool(
    name="get-entity-check-results",
    title="Checks of one entity",
    description=(
        "Returns for one entity its level, score and coverage in each scorecard, counts by "
        "state, and each check that fails or is unknown with why, since when and the fix. Give "
        "exactly one of name and entityRef; namespace is default, kind component. scorecardId "
        "leaves the checks of one scorecard, and adds nextSteps to its next level, cheapest "
        f"first. unknown is no fail: its reason says what is missing. {SIZE_NOTE}; `limit` bounds "
        "the results."
    ),
    arguments=EntityResultsArguments,
    output_schema=describe_record(
        {
            "entityRef": _TEXT,
            "owner": _TEXT,
            "scorecards": describe_list(describe_record({"id": _TEXT, **STANDING}, ("id",))),
            **AGE,
            "counts": COUNTS,
            "results": describe_list(
                describe_record(
                    {
                        "check": _TEXT,
                        "title": _TEXT,
                        "state": describe_text_member(
                            "pass, fail, unknown, exempt or not-applicable."
                        ),
                        "since": _TEXT,
                        "advisory": _FLAG,
                        "flapping": _FLAG,
                        "stale": _FLAG,
                        "message": _TEXT,
                        "because": EVIDENCE,
                        "fix": describe_record({"link": _TEXT, "instructions": _TEXT}, ()),
                        "exemption": describe_record(
                            {"id": _TEXT, "reason": _TEXT, "until": _TEXT}, ("id",)
                        ),
                    },
                    ("check", "title", "state"),
                )
            ),
            "totalCount": describe_text_member("Results of the wanted states.")
            | {"type": "integer"},
            "nextSteps": describe_list(
                describe_record({"check": _TEXT, "level": _TEXT}, ("check",))
            ),
        },
        ("entityRef", "asOf", "results"),
    ),
    run=run_entity_results,
    permissions=(CATALOG_READ, CHECK_READ),
)

CHANGED_RESULTS_TOOL = Tool(
    name="get-changed-check-results",
    title="Changed results",
    description=(
        "Returns which results of checks became others since a time, newest first: from which "
        "state to which, when, and what was written then. scorecardId, checkId and entityRef "
        "narrow them; ids are from get-scorecard-discovery. To unknown means that a fact went "
        f"missing, not that something broke. {SIZE_NOTE}; ask for pages with `limit` and `cursor`."
    ),
    arguments=ChangedResultsArguments,
    output_schema=describe_record(
        {
            "changes": describe_list(
                describe_record(
                    {
                        "at": _TEXT,
                        "check": _TEXT,
                        "entityRef": _TEXT,
                        "from": describe_text_member("State before."),
                        "to": describe_text_member("State after."),
                        "why": {"type": "object", "description": "What was written."},
                    },
                    ("at", "check", "entityRef", "from", "to"),
                )
            ),
            "nextCursor": NEXT_CURSOR,
        },
        ("changes",),
    ),
    run=run_changed_results,
    permissions=(CATALOG_READ, CHECK_READ),
)


Document = dict[str, Any]


class CheckPreviewArguments(Struct, forbid_unknown_fields=True):
    """A definition, or changes to a stored one, and perhaps one entity."""

    definition: (
        Annotated[
            dict[str, Any],
            describe_argument(
                "A whole check: id, title and rule, which is a comparison, or all, any or not of "
                "such; give this or checkId.",
                {
                    "id": "covered",
                    "title": "Covered",
                    "rule": {
                        "source": "coverage",
                        "fact": "lines",
                        "operator": "greaterThan",
                        "value": 80,
                    },
                },
            ),
        ]
        | UnsetType
    ) = UNSET
    check_id: (
        Annotated[
            str, describe_argument("Id of a stored check; give this or definition.", "covered")
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    changes: (
        Annotated[
            dict[str, Any],
            describe_argument(
                "Members to replace in the stored check; none when left out.",
                {"onUnknown": "fail"},
            ),
        ]
        | UnsetType
    ) = UNSET
    entity_ref: (
        Annotated[
            str,
            describe_argument("One entity; all when left out.", "component:default/payments-api"),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="entityRef")
    limit: Annotated[
        int, describe_argument("Most changed entities to return.", 20, ge=1, le=200)
    ] = 20


async def run_check_preview(arguments: CheckPreviewArguments, context: Context) -> str:
    """Counts now and under the new definition, and the first entities that would change."""
    check = await _read_previewed_check(arguments, context)
    ref = await _read_example_ref(arguments, context)
    scope = PreviewScope([ref] if ref else [])
    caller = context.call.grant.id
    try:
        found = await trials.preview_check(
            context.database, check, context.now, arguments.limit, caller, scope
        )
    except InputError as error:
        raise ToolError(error.message) from None
    answer = {
        "rule": shorten_text(language.describe_rule(check.rule)),
        **found.age.render(),
        "now": render_counts(found.now),
        "then": render_counts(found.then),
        "changed": found.changed,
        "entities": [
            dict(zip(("entityRef", "from", "to"), (one.ref, *one.words), strict=True))
            for one in found.first
        ],
    }
    told = await _explain_entity(check, ref, context) if ref else {}
    return encode_result({**answer, **told})


async def _read_previewed_check(arguments: CheckPreviewArguments, context: Context) -> Check:
    document, check_id = arguments.definition, arguments.check_id
    if isinstance(document, dict) is isinstance(check_id, str):
        raise ToolError(f"Give exactly one of definition and checkId. {DISCOVER}")
    if isinstance(check_id, str):
        stored = await check_common.require_existing(
            check_store.existing(context.database, check_id)
        )
        changes = arguments.changes if isinstance(arguments.changes, dict) else {}
        merged = {**stored.written, **changes}
        document = {name: value for name, value in merged.items() if value is not None}
    assert isinstance(document, dict)
    call = context.call
    try:
        return await definition_writes.read_check_document(
            document, context.database, call.registry, call.settings.max_json_depth
        )
    except InputError as error:
        raise ToolError(f"The check cannot be taken: {error.message}") from None


async def _read_example_ref(arguments: CheckPreviewArguments, context: Context) -> str:
    if not isinstance(arguments.entity_ref, str):
        return ""
    try:
        ref = refs.canonicalize_ref(arguments.entity_ref, kind="component")
    except InputError as error:
        raise ToolError(f"entityRef: {error.message}") from None
    if await stored_entities.read_entity_id(context.database, ref) is None:
        raise await build_unknown_entity_error(context.database, ref)
    return ref


async def _explain_entity(check: Check, ref: str, context: Context) -> Document:
    """The result that the entity would get, with the facts behind it."""
    database = context.database
    entity_id = await stored_entities.read_entity_id(database, ref)
    document = await stored_entities.read_collectable(database, ref)
    if entity_id is None or document is None:
        return {}
    own = await entity_evaluation.read_own_facts(database, entity_id)
    facts = {**await store.list_latest_by_ref(database, ref), **own}
    entity = CheckedEntity(ref, document, facts)
    told = await asyncio.to_thread(rule_evaluation.explain_check, check, entity, context.now)
    return drop_empty(
        {"result": {"state": state.name_state(told.state), **render_explanation(told, values=True)}}
    )


CHECK_PREVIEW_TOOL = Tool(
    name="get-check-preview",
    title="Preview of a check",
    description=(
        "Returns what a new or a changed check would do: entities by state as they are and as "
        "they would be, and those that would change, from none where there is no result yet; with "
        "entityRef why. Nothing is stored. Give exactly one of definition and checkId, from "
        "get-scorecard-discovery; facts are named as get-data-source-discovery has them. "
        f"{SIZE_NOTE}; `limit` bounds the entities."
    ),
    arguments=CheckPreviewArguments,
    output_schema=describe_record(
        {
            "rule": _TEXT,
            **AGE,
            "now": COUNTS,
            "then": COUNTS,
            "changed": {"type": "integer", "description": "Entities that would change."},
            "entities": describe_list(
                describe_record({"entityRef": _TEXT, "from": _TEXT, "to": _TEXT}, ("entityRef",))
            ),
            "result": describe_record(
                {"state": _TEXT, "message": _TEXT, "because": EVIDENCE}, ("state",)
            ),
        },
        ("rule", "asOf", "now", "then", "changed", "entities"),
    ),
    run=run_check_preview,
    permissions=(CATALOG_READ, SOURCE_READ),
)


class ExemptionRequestArguments(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The entity, the check or scorecard, the reason and the end."""

    entity_ref: Annotated[
        str, describe_argument("Whole reference of the entity.", "component:default/payments-api")
    ] = msgspec.field(name="entityRef")
    reason: Annotated[
        str, describe_argument("The reason, which people read.", "Shut down in March", min_length=1)
    ]
    check_id: (
        Annotated[str, describe_argument("Id of a check; give this or scorecardId.", "covered")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    scorecard_id: (
        Annotated[str, describe_argument("Id of a scorecard; give this or checkId.", "readiness")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="scorecardId")
    until: (
        Annotated[
            str,
            describe_argument(
                "Its last day; only if it may be permanent when left out.", "2027-03-31"
            ),
        ]
        | UnsetType
    ) = UNSET
    link: (
        Annotated[
            str, describe_argument("Link to a ticket; none when left out.", "https://example.com/1")
        ]
        | UnsetType
    ) = UNSET


async def run_exemption_request(arguments: ExemptionRequestArguments, context: Context) -> str:
    """Store a request and return it; raises NotAllowedError if the caller may not ask."""
    given = {
        "entity": arguments.entity_ref,
        "reason": arguments.reason,
        "check": arguments.check_id,
        "scorecard": arguments.scorecard_id,
        "until": arguments.until,
        "link": arguments.link,
    }
    call = context.call
    _require_consent(call.grant)
    caller = ExemptionCaller(
        call.grant.owner, call.grant.permissions, PeopleTrust.of(call.settings)
    )
    write = audit_writes(
        context.database, call.caller(), definition_writes.audit_exemption("exemption.request")
    )
    try:
        wanted = exemption_store.parse_exemption_request(
            {name: value for name, value in given.items() if value is not UNSET}, context.now
        )
        usual = call.settings.exemption_days
        found = await write(
            partial(
                definition_writes.request_exemption,
                wanted=wanted,
                caller=caller,
                now=context.now,
                usual_days=usual,
            )
        )
    except NotFoundError as error:
        raise ToolError(f"{error.message} {DISCOVER}") from None
    except (InputError, ConflictError) as error:
        raise ToolError(f"The request cannot be taken: {error.message}") from None
    return encode_result(found.render())


def _require_consent(grant: Grant) -> None:
    """Raise NotAllowedError for a client that has consent only to read.

    Members of an entity's owner group may ask without the permission. A client needs it all the
    same, because the consent page lists it for the person who authorizes the client.
    """
    if grant.grantable is not None and EXEMPTION_REQUEST not in grant.permissions:
        raise NotAllowedError(
            f"The client was not allowed to ask for exemptions ({EXEMPTION_REQUEST}).",
            missing=(EXEMPTION_REQUEST,),
        )


EXEMPTION_REQUEST_TOOL = Tool(
    name="request-check-exemption",
    title="Request an exemption",
    description=(
        "Asks that an entity be exempt from a check or from a whole scorecard; it holds once "
        "somebody else has approved it. Ask only when a person told you to, with that person's "
        "reason. The caller has to be a member of the group that owns the entity, or to have the "
        "permission. Ids are from get-scorecard-discovery."
    ),
    arguments=ExemptionRequestArguments,
    output_schema=describe_record(
        dict.fromkeys(
            (
                "id",
                "check",
                "scorecard",
                "entity",
                "reason",
                "link",
                "from",
                "until",
                "state",
                "requestedBy",
                "requestedAt",
                "decidedBy",
                "decidedAt",
                "comment",
            ),
            _TEXT,
        ),
        ("id", "entity", "reason", "state"),
    ),
    run=run_exemption_request,
    permissions=(CATALOG_READ, CHECK_READ),
    writes=True,
)
