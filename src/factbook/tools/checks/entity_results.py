"""get-entity-check-results: the levels of one entity, and what its checks say and rest on."""

from collections import Counter
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET

from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.checks import state
from factbook.checks.definitions import scorecard
from factbook.checks.exemptions import exemption_store
from factbook.checks.exemptions.exemption import Exemption
from factbook.checks.exemptions.exemption_store import ExemptionFilter
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import decoded
from factbook.checks.results import result_age, result_queries
from factbook.checks.results.result_queries import CheckResult, EntityResults
from factbook.checks.scorecards import next_steps
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.clock import iso_or_none
from factbook.tools.checks import arguments as given
from factbook.tools.checks.arguments import ScorecardId, States
from factbook.tools.checks.shown import COUNTS, EVIDENCE, STANDING, explained, said, short, standing
from factbook.tools.result_schema import AGE, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, NameOrRefArguments, Tool, argument, encode, unknown_entity

_OPEN: Final = ["fail", "unknown"]
_STEPS: Final = 10
_EXEMPTIONS: Final = 50


class EntityResultsArguments(NameOrRefArguments, forbid_unknown_fields=True):
    """An entity, and which of its results."""

    scorecard_id: ScorecardId = msgspec.field(default=UNSET, name="scorecardId")
    states: States = UNSET
    limit: Annotated[int, argument("Most results to return.", 20, ge=1, le=200)] = 20


async def run(arguments: EntityResultsArguments, context: Context) -> str:
    """Its standing in each scorecard, counts by state, and the results of the wanted states."""
    ref, database = arguments.ref(), context.database
    words = given.states_checked(_OPEN if arguments.states is UNSET else arguments.states)
    cards = await _cards(arguments, context)
    only = cards[0].card.checks if arguments.scorecard_id is not UNSET else frozenset[str]()
    found = await result_queries.of_entity(database, ref, context.now, only=only)
    if found is None:
        raise await unknown_entity(database, ref)
    levels = await level_store.of_entity(database, found.entity_id)
    graded = [(one, decoded(levels, one.slot)) for one in cards]
    about = [one for one in found.results if one.state != state.OUT]
    wanted = [one for one in found.results if state.word(one.state) in words]
    shown = wanted[: arguments.limit]
    exempt = await _exemptions(found, context) if any(_is_exempt(one) for one in shown) else {}
    age = await result_age.of_checks(database, [one.check.id for one in about], context.now)
    answer = {
        "entityRef": ref,
        "owner": found.owner,
        "scorecards": [
            {"id": card.card.id, **standing(card, own)} for card, own in graded if own is not None
        ],
        **age.render(),
        "counts": Counter(state.word(one.state) for one in about),
        "results": [_shown(one, exempt, values=context.reads_values) for one in shown],
        "totalCount": len(wanted),
        "nextSteps": _steps(cards[0], found, context) if only else None,
    }
    return encode({"results": [], **said(answer)})


async def _cards(arguments: EntityResultsArguments, context: Context) -> list[ScorecardInEffect]:
    if isinstance(arguments.scorecard_id, str):
        return [await given.scorecard_in_effect(context.database, arguments.scorecard_id)]
    return [
        ScorecardInEffect(scorecard.parse(one.published), one.slot)
        for one in await scorecard_store.everything(context.database)
        if one.slot is not None and one.published is not None
    ]


def _is_exempt(result: CheckResult) -> bool:
    return bool(result.state & state.EXEMPT)


async def _exemptions(found: EntityResults, context: Context) -> dict[str | None, Exemption]:
    """Those that hold now by check; of a whole scorecard under None."""
    wanted = ExemptionFilter("approved", found.ref, None, None)
    held = await exemption_store.page(context.database, wanted, _EXEMPTIONS)
    return {one.check: one for one in reversed(held) if one.holds(context.now)}


def _shown(
    result: CheckResult, exempt: dict[str | None, Exemption], *, values: bool
) -> dict[str, Any]:
    held = exempt.get(result.check.id) or exempt.get(None) if _is_exempt(result) else None
    return said(
        {
            "check": result.check.id,
            "title": result.check.title,
            "state": state.word(result.state),
            "since": iso_or_none(result.since),
            "advisory": result.check.severity == "advisory" or None,
            "flapping": result.is_flapping or None,
            "stale": result.is_stale or None,
            **explained(result.explanation, values=values),
            "exemption": None
            if held is None
            else said(
                {"id": held.id, "reason": short(held.reason), "until": iso_or_none(held.until)}
            ),
        }
    )


def _steps(card: ScorecardInEffect, found: EntityResults, context: Context) -> list[dict[str, Any]]:
    steps = next_steps.steps(card.card, found.results, context.now)
    return [
        said({"check": step.check, "level": card.names.get(step.rank)})
        for step, _ in steps[:_STEPS]
    ]


_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}

TOOL = Tool(
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
    output_schema=record(
        {
            "entityRef": _TEXT,
            "owner": _TEXT,
            "scorecards": array(record({"id": _TEXT, **STANDING}, ("id",))),
            **AGE,
            "counts": COUNTS,
            "results": array(
                record(
                    {
                        "check": _TEXT,
                        "title": _TEXT,
                        "state": text("pass, fail, unknown, exempt or not-applicable."),
                        "since": _TEXT,
                        "advisory": _FLAG,
                        "flapping": _FLAG,
                        "stale": _FLAG,
                        "message": _TEXT,
                        "because": EVIDENCE,
                        "fix": record({"link": _TEXT, "instructions": _TEXT}, ()),
                        "exemption": record(
                            {"id": _TEXT, "reason": _TEXT, "until": _TEXT}, ("id",)
                        ),
                    },
                    ("check", "title", "state"),
                )
            ),
            "totalCount": text("Results of the wanted states.") | {"type": "integer"},
            "nextSteps": array(record({"check": _TEXT, "level": _TEXT}, ("check",))),
        },
        ("entityRef", "asOf", "results"),
    ),
    run=run,
    permissions=(CATALOG_READ, CHECK_READ),
)
