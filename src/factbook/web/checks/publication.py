"""Publication of a scorecard with those of its checks that are drafts, in one transaction."""

from collections.abc import Sequence
from typing import NamedTuple

from factbook.audit.trail import AuditEntry
from factbook.auth.permissions import CHECK_READ, CHECK_WRITE, SCORECARD_WRITE
from factbook.checks.definitions import definition_writes, publications, scorecard
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.errors import PreconditionFailedError
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web.checks import check_page, shares
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext


class PublishedTogether(NamedTuple):
    """A scorecard that was published, and the ids of the checks that were with it."""

    stored: StoredScorecard
    checks: list[str]


async def publish(visit: PageContext) -> Reply:
    """Publish the draft of a scorecard and the checks of it that nobody has published.

    The form carries the tag of each that the person saw: others are neither more nor newer.
    """
    id_, seen = check_page.definition_id(visit, "scorecard"), visit.sent.one("seen")
    seen_drafts = set(visit.sent.all("draft"))
    actor, now = visit.person.ref, visit.now

    def work(transaction: Transaction) -> PublishedTogether:
        publications.lock_definitions(transaction)
        before = scorecard_store.existing_within(transaction, id_)
        definition_writes.check_tag(before, [seen])
        drafts = _drafts(transaction, before)
        if {f"{one.id} {definition_writes.make_tag(one)}" for one in drafts} != seen_drafts:
            raise PreconditionFailedError("Its checks were changed since; look at them again.")
        ids = [one.id for one in drafts]
        for check_id in ids:
            check_store.publish(transaction, check_id, actor, now)
        # This page needs the permission to write scorecards.
        stored = scorecard_store.publish(transaction, id_, actor, now, permitted=True)
        return PublishedTogether(stored, ids)

    def about(done: PublishedTogether) -> AuditEntry:
        detail = {"version": done.stored.newest_version, "checks": done.checks}
        return AuditEntry("scorecard.publish", id_, detail)

    await visit.writing(about)(work)
    return visit.redirect(
        shares.scorecard_path(id_), "It is published. Levels come as entities are evaluated."
    )


def _drafts(transaction: Transaction, stored: StoredScorecard) -> list[StoredCheck]:
    """The checks of a scorecard that were never published."""
    wanted = scorecard.list_named_checks(stored.written)
    return [one for one in check_store.all_within(transaction) if one.id in wanted and one.is_draft]


PUBLISHING: Sequence[PageRoute] = (
    PageRoute(
        "POST",
        "/scorecards/{id}/publish",
        publish,
        (CHECK_READ, CHECK_WRITE, SCORECARD_WRITE),
    ),
)
