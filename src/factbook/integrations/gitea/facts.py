"""Facts from answers: one function for each group of the shapes, without any request.

Each returns its leaves, each a value or the reason that it is missing, or one reason for all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from factbook.integrations import file_types as files
from factbook.integrations import merge_times
from factbook.integrations.gitea import protection
from factbook.integrations.gitea.answers import GiteaBranch, GiteaRepository, ProtectionRule
from factbook.integrations.gitea.pulls import Closed
from factbook.integrations.integration import Collected
from factbook.outbound.outcomes import Missing, Outcome

Leaves = dict[str, Any]

# The last is Forgejo's own.
CODEOWNERS: Final = frozenset(
    {"CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS"}
)

_NOT_ASKED: Final = Missing(Outcome.TRANSIENT, "not asked for")
_PULLS_OFF: Final = Missing(Outcome.FEATURE_OFF, "pull requests are switched off")
_NO_PULLS: Final = Missing(
    Outcome.FEATURE_OFF, "a mirror or an empty repository takes no pull requests"
)
_ISSUES_OFF: Final = Missing(Outcome.FEATURE_OFF, "issues are switched off")
_ISSUES_ELSEWHERE: Final = Missing(Outcome.FEATURE_OFF, "issues are kept in another tracker")
_NO_CHECK: Final = Missing(Outcome.NOT_APPLICABLE, "Gitea does not say what is wrong with the file")


class Collaborators(NamedTuple):
    """User names, sorted, as many as are listed, and how many there are."""

    logins: list[str]
    number: int | Missing


@dataclass
class GiteaSnapshot:
    """Data collected about one repository; `cutoff` is 30 days ago."""

    repository: GiteaRepository
    cutoff: int
    closed_pulls: Closed | Missing = _NOT_ASKED
    open_pulls: int | Missing = _NOT_ASKED
    open_issues: int | Missing = _NOT_ASKED
    closed_issues: int | Missing = _NOT_ASKED
    closed_last_month: int | Missing = _NOT_ASKED
    languages: dict[str, int] | Missing = _NOT_ASKED
    collaborators: Collaborators | Missing = _NOT_ASKED
    branch: GiteaBranch | Missing = _NOT_ASKED
    rule: ProtectionRule | Missing = _NOT_ASKED
    paths: list[str] | Missing = _NOT_ASKED

    @cached_property
    def merging(self) -> Leaves | Missing:
        """The facts of the merged pull requests, by group."""
        closed = self.closed_pulls
        if off := without_pulls(self.repository):
            return off
        return (
            closed
            if isinstance(closed, Missing)
            else merge_times.figures(closed.merged, self.cutoff)
        )

    @cached_property
    def protection(self) -> protection.Leaves | Missing:
        """The leaves of branchProtection, and those of codeReview that rules decide."""
        branch = self.branch
        return branch if isinstance(branch, Missing) else protection.leaves(branch, self.rule)


def without_pulls(repository: GiteaRepository) -> Missing | None:
    """The reason that the repository has no pull requests, if it cannot have any."""
    if not repository.has_pull_requests:
        return _PULLS_OFF
    return _NO_PULLS if repository.mirror or repository.empty else None


def without_issues(repository: GiteaRepository) -> Missing | None:
    """The reason that the repository has no issues, if it cannot have any."""
    if not repository.has_issues:
        return _ISSUES_OFF
    return None if repository.external_tracker is None else _ISSUES_ELSEWHERE


def collected(known: GiteaSnapshot) -> Collected:
    """The facts of all shapes that Gitea fills."""
    return Collected.of({place: group(known) for place, group in _GROUPS.items()})


def _pull_requests(known: GiteaSnapshot) -> Leaves | Missing:
    if off := without_pulls(known.repository):
        return off
    closed, found = known.closed_pulls, known.merging
    merged = closed if isinstance(closed, Missing) else closed.ever_merged
    total = _sum(known.open_pulls, closed if isinstance(closed, Missing) else closed.total)
    return {
        "total": total,
        "merged": merged,
        "open": known.open_pulls,
        "mergedPercentage": merge_times.percentage(merged, total),
        "mergedLastMonth": (
            found if isinstance(found, Missing) else found["pullRequests"]["mergedLastMonth"]
        ),
    }


def _merge_time(known: GiteaSnapshot) -> Leaves | Missing:
    found = known.merging
    return found if isinstance(found, Missing) else found["mergeTime"]


def _latest(known: GiteaSnapshot) -> Leaves | Missing:
    found = known.merging
    return found if isinstance(found, Missing) else found["latestMergedPR"]


def _issues(known: GiteaSnapshot) -> Leaves | Missing:
    return without_issues(known.repository) or {
        "total": _sum(known.open_issues, known.closed_issues),
        "open": known.open_issues,
        "closed": known.closed_issues,
        "closedLastMonth": known.closed_last_month,
    }


def _collaboration(known: GiteaSnapshot) -> Leaves:
    sizes, who = known.languages, known.collaborators
    return {
        "languages": (
            sizes
            if isinstance(sizes, Missing)
            else sorted(sizes, key=lambda language: (-sizes[language], language))
        ),
        "collaborators": who if isinstance(who, Missing) else who.logins,
        "collaboratorCount": who if isinstance(who, Missing) else who.number,
    }


def _branch_protection(known: GiteaSnapshot) -> Leaves | Missing:
    found = known.protection
    return found if isinstance(found, Missing) else found.protection


def _code_review(known: GiteaSnapshot) -> Leaves:
    found = known.protection
    if isinstance(found, Missing):
        rules = dict.fromkeys(protection.UNPROTECTED.review, found)
    else:
        rules = found.review
    return {**rules, **_codeowners(known.paths)}


def _codeowners(paths: list[str] | Missing) -> Leaves:
    leaves = ("usesCodeowners", "codeownersHasErrors", "codeownersErrorCount")
    if isinstance(paths, Missing):
        return dict.fromkeys(leaves, paths)
    if CODEOWNERS & set(paths):
        return dict(zip(leaves, (True, _NO_CHECK, _NO_CHECK), strict=True))
    return dict(zip(leaves, (False, False, 0), strict=True))


def _security(known: GiteaSnapshot) -> Leaves:
    found = known.protection
    enabled = found if isinstance(found, Missing) else found.protection["enabled"]
    return {"branchProtection": enabled}


def _repository(known: GiteaSnapshot) -> Leaves | Missing:
    return known.paths if isinstance(known.paths, Missing) else files.facts(known.paths)


def _sum(one: int | Missing, other: int | Missing) -> int | Missing:
    if isinstance(one, Missing):
        return one
    return other if isinstance(other, Missing) else one + other


_GROUPS: Final[dict[str, Callable[[GiteaSnapshot], Leaves | Missing]]] = {
    "codehost.pullRequests": _pull_requests,
    "codehost.mergeTime": _merge_time,
    "codehost.issues": _issues,
    "codehost.latestMergedPR": _latest,
    "codehost.collaboration": _collaboration,
    "codehost.branchProtection": _branch_protection,
    "codehost.codeReview": _code_review,
    "security": _security,
    "repository": _repository,
}
