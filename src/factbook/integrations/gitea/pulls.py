"""Merged pull requests: the few pages that merge times need, and the number ever merged.

Gitea lists closed pull requests, merged or not, and cannot filter for merged ones. So all are
listed once, and the numbers of the merged ones are kept; later runs list only those updated since.
The list of issues serves for that: its rows lack branches and repositories, and it can be filtered
by time.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from factbook.clock import DAY
from factbook.integrations import merge_times
from factbook.integrations.gitea.answers import GiteaIssue, GiteaPullRequest, GiteaRepository
from factbook.integrations.gitea.api import MOST_PAGES, NO_TOTAL, PAGE, GiteaApi
from factbook.integrations.integration import store_entry, stored_entry
from factbook.integrations.merge_times import MergedPull
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import build_path
from factbook.outbound.outcomes import Missing, Outcome, report_too_many

MOST_CLOSED: Final = MOST_PAGES * PAGE
# A pull request that is deleted leaves the count when all are listed again.
_KEPT_FOR: Final = 30 * DAY

_CHANGED: Final = Missing(Outcome.TRANSIENT, "the list changed while it was read")
_UNCOUNTABLE: Final = report_too_many(MOST_CLOSED, "closed pull requests to count")
_TOO_MANY_PAGES: Final = report_too_many(MOST_PAGES, "pages of closed pull requests to count")
_TOO_MANY_RECENT: Final = report_too_many(MOST_PAGES, "pages of pull requests to read for 30 days")
_HIDDEN: Final = Missing(Outcome.DENIED, "counting merged pull requests needs read:issue")


class Closed(NamedTuple):
    """Figures of the closed pull requests.

    `merged` holds all that merge times are computed from; `total` is the number of closed pull
    requests, `ever_merged` the number of those merged.
    """

    merged: list[MergedPull]
    total: int | Missing
    ever_merged: int | Missing


@dataclass
class _Recent:
    """Pull requests from the most recently updated on; `whole` if they are all closed ones."""

    pulls: dict[int, GiteaPullRequest] = field(default_factory=dict)
    total: int | None = None
    whole: bool = False

    @property
    def merged(self) -> list[MergedPull]:
        found = ((pull, pull.merged_at) for pull in self.pulls.values())
        return [_merged(pull, merge_times.milliseconds(moment)) for pull, moment in found if moment]

    @property
    def updated(self) -> list[int]:
        return [merge_times.milliseconds(pull.updated_at) for pull in self.pulls.values()]


class _StoredMerges(msgspec.Struct, array_like=True):
    """Numbers of all merged pull requests that were not updated after `until`.

    `since` is the time of the full listing.
    """

    since: int
    until: int
    numbers: list[int]


async def closed(api: GiteaApi, repository: GiteaRepository, cutoff: int) -> Closed | Missing:
    """The figures of a repository's closed pull requests, or the reason for their absence."""
    recent = await _recent(api, repository, cutoff)
    if isinstance(recent, Missing):
        return recent
    total = NO_TOTAL if recent.total is None else recent.total
    return Closed(recent.merged, total, await _count(api, repository, recent))


async def _recent(api: GiteaApi, repository: GiteaRepository, cutoff: int) -> _Recent | Missing:
    """As many pull requests as merge times need."""
    target = build_path("repos", *repository.full_name.split("/"), "pulls")
    what = f"recent:{api.host}/{repository.id}"
    if await exceeds_noted_limit(api.memory, what, MOST_PAGES, api.now):
        return _TOO_MANY_RECENT
    found = _Recent()
    read = 0
    for number in range(1, MOST_PAGES + 1):
        page = await api.page(
            target,
            list[GiteaPullRequest],
            state="closed",
            sort="recentupdate",
            page=number,
            limit=PAGE,
        )
        if isinstance(page, Missing):
            return page
        read += len(page.rows)
        for pull in page.rows:
            # A list may shift between two pages.
            found.pulls.setdefault(pull.number, pull)
        found.total = page.total
        found.whole = page.ends(read)
        if found.whole or merge_times.complete(found.merged, min(found.updated), cutoff, bots=True):
            return found
    await note_exceeded_limit(api.memory, what, MOST_PAGES, api.now)
    return _TOO_MANY_RECENT


async def _count(api: GiteaApi, repository: GiteaRepository, recent: _Recent) -> int | Missing:
    """The number of pull requests ever merged."""
    total = recent.total
    if recent.whole:
        return _CHANGED if len(recent.pulls) < (total or 0) else len(recent.merged)
    key = f"merged:{api.host}/{repository.id}"
    kept = await stored_entry(api.memory, key, _StoredMerges)
    uncountable = total is not None and total > MOST_CLOSED
    until = max(recent.updated)
    if kept and (uncountable or 0 <= api.now - kept.since < _KEPT_FOR):
        changed = await _numbers(api, repository, kept.until)
        if isinstance(changed, Missing):
            return changed
        numbers = changed.union(kept.numbers)
        # Were there more merged than closed ones, some would have been deleted.
        if total is None or len(numbers) <= total:
            changes = _StoredMerges(kept.since, until, sorted(numbers))
            if changes != kept:
                await store_entry(api.memory, key, changes)
            return len(numbers)
    if uncountable:
        return _UNCOUNTABLE
    listed = await _numbers(api, repository, 0)
    if not isinstance(listed, Missing):
        await store_entry(api.memory, key, _StoredMerges(api.now, until, sorted(listed)))
    return listed if isinstance(listed, Missing) else len(listed)


async def _numbers(api: GiteaApi, repository: GiteaRepository, since: int) -> set[int] | Missing:
    """The numbers of the merged pull requests that were updated since."""
    target = build_path("repos", *repository.full_name.split("/"), "issues")
    found = await api.pages(
        target,
        list[GiteaIssue],
        _HIDDEN,
        what="changed" if since else "ever",
        type="pulls",
        state="closed",
        since=merge_times.timestamp(since),
    )
    if isinstance(found, Missing):
        return found
    issues, whole = found
    if not whole:
        return _TOO_MANY_PAGES
    if len({issue.number for issue in issues.rows}) < (issues.total or 0):
        return _CHANGED
    return {one.number for one in issues.rows if one.pull_request and one.pull_request.merged}


def _merged(pull: GiteaPullRequest, merged_at: int) -> MergedPull:
    user = None if pull.user is None or pull.user.is_gone else pull.user
    return MergedPull(
        pull.number,
        pull.title,
        user.login if user else None,
        user is not None and user.is_bot,
        merge_times.milliseconds(pull.created_at),
        merged_at,
        merge_times.milliseconds(pull.updated_at),
    )
