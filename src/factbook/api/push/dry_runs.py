"""Dry runs of pushes: what would change in a set, and in the results of checks."""

from typing import TYPE_CHECKING, Final

from factbook.api.openapi.parameters import DRY_RUN
from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.catalog.sets import PreparedPush
from factbook.catalog.store.stored_sets import PushResult
from factbook.errors import InputError, NotAllowedError
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas import catalog

if TYPE_CHECKING:
    # Of the pushes, few are trials.
    from factbook.checks.trials.write_trial import WriteTrial

_MOST_RESULTS: Final = 500


def trial(request: Request, state: HandlerContext) -> "WriteTrial":
    """A trial of the push with its checks; raises NotAllowedError for who may not see it."""
    if not DRY_RUN.of(request):
        raise InputError("checks is for a dry run: give dryRun=true too.")
    assert request.token is not None
    missing = {CATALOG_READ, CHECK_READ} - request.token.permissions
    if missing:
        names = tuple(sorted(missing))
        raise NotAllowedError(f"Results of checks need {' and '.join(names)}.", missing=names)
    return state.write_trial(request.caller)


def answer(
    request: Request,
    name: str,
    push: PreparedPush,
    outcome: PushResult,
    made: "WriteTrial | None",
) -> JsonReply[catalog.Tried]:
    """The difference that the push would make."""
    plan, sent = outcome.plan, {item.ref for item in push.items}
    return reply(
        catalog.Tried(
            set=name,
            dry_run=True,
            revision=plan.set.revision if plan.set else 0,
            changes=catalog.Changes(**plan.changes),
            difference=[
                one for one in plan.difference() if request.may_read or one.entity_ref in sent
            ],
            warnings=push.warnings,
            checks=None if made is None else _checks(made),
        )
    )


def _checks(made: "WriteTrial") -> catalog.TriedChecks:
    found = made.differences
    results = [
        catalog.TriedResult(one.check_id, one.ref, one.after, one.before)
        for one in found[:_MOST_RESULTS]
    ]
    return catalog.TriedChecks(len(found), sum(one.after == "fail" for one in found), results)
