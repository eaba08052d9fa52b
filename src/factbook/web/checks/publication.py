"""Publication of a scorecard with those of its checks that are drafts, in one transaction."""

from collections.abc import Sequence
from typing import NamedTuple

from factbook.audit.trail import AuditEntry
from factbook.auth.permissions import CHECK_READ, CHECK_WRITE, SCORECARD_WRITE
from factbook.checks.definitions import definition_lock, scorecard
from factbook.checks.submissions import definition_writes
from factbook.checks.versions.check_store import check_store
from factbook.checks.versions.grade_slots import StoredScorecard
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web.checks import filters, shares
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext


class PublishedTogether(NamedTuple):
    """A scorecard that was published, and the ids of the checks that were with it."""

    stored: StoredScorecard
    checks: list[str]


async def publish(visit: PageContext) -> Reply:
    """Publish the draft of a scorecard and the checks of it that nobody has published."""
    id_, seen = filters.definition_id(visit, "scorecard"), visit.sent.one("seen")
    actor, now = visit.person.ref, visit.now

    def work(transaction: Transaction) -> PublishedTogether:
        definition_lock.take(transaction)
        before = scorecard_store.existing_within(transaction, id_)
        definition_writes.check_tag(before, [seen])
        drafts = _drafts(transaction, before)
        for check_id in drafts:
            check_store.publish(transaction, check_id, actor, now)
        return PublishedTogether(scorecard_store.publish(transaction, id_, actor, now), drafts)

    def about(done: PublishedTogether) -> AuditEntry:
        detail = {"version": done.stored.newest_version, "checks": done.checks}
        return AuditEntry("scorecard.publish", id_, detail)

    await visit.writing(about)(work)
    return visit.redirect(
        shares.scorecard_path(id_), "It is published. Levels come as entities are evaluated."
    )


def _drafts(transaction: Transaction, stored: StoredScorecard) -> list[str]:
    """The checks of a scorecard that were never published."""
    wanted = scorecard.checks_of(stored.written)
    return [
        one.id for one in check_store.all_within(transaction) if one.id in wanted and one.is_draft
    ]


PUBLISHING: Sequence[PageRoute] = (
    PageRoute(
        "POST",
        "/scorecards/{id}/publish",
        publish,
        (CHECK_READ, CHECK_WRITE, SCORECARD_WRITE),
    ),
)
