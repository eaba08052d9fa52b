"""Facts from answers: one function for each group of the shapes, without any request.

Each returns its leaves, each a value or the reason that it is missing, or one reason for all.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from factbook.integrations import code_host, merge_times
from factbook.integrations.gitea import protection
from factbook.integrations.gitea.answers import GiteaBranch, GiteaRepository, ProtectionRule
from factbook.integrations.gitea.pulls import Closed
from factbook.integrations.integration import Collected, Leaves, total
from factbook.outbound.outcomes import Missing, Outcome

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
    collaborators: Leaves | Missing = _NOT_ASKED
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
    def protection(self) -> protection.ProtectionLeaves | Missing:
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
    found = known.protection
    return Collected.of(
        code_host.groups(
            merging=known.merging,
            pull_requests=_pull_requests(known),
            issues=without_issues(known.repository)
            or code_host.issues(known.open_issues, known.closed_issues, known.closed_last_month),
            collaboration=_collaboration(known),
            protection=found if isinstance(found, Missing) else found.protection,
            review=_code_review(known),
            paths=known.paths,
        )
    )


def _pull_requests(known: GiteaSnapshot) -> Leaves | Missing:
    closed = known.closed_pulls
    if off := without_pulls(known.repository):
        return off
    if isinstance(closed, Missing):
        every, merged = total((known.open_pulls, closed)), closed
        return code_host.pull_requests(every, merged, known.open_pulls, known.merging)
    every = total((known.open_pulls, closed.total))
    return code_host.pull_requests(every, closed.ever_merged, known.open_pulls, known.merging)


def _collaboration(known: GiteaSnapshot) -> Leaves:
    sizes, who = known.languages, known.collaborators
    languages: list[str] | Missing = sizes if isinstance(sizes, Missing) else []
    if not isinstance(sizes, Missing):
        languages = sorted(sizes, key=lambda language: (-sizes[language], language))
    listed = code_host.collaborators(who, who) if isinstance(who, Missing) else who
    return {"languages": languages, **listed}


def _code_review(known: GiteaSnapshot) -> Leaves:
    found = known.protection
    if isinstance(found, Missing):
        rules = dict.fromkeys(protection.UNPROTECTED.review, found)
    else:
        rules = found.review
    return {**rules, **code_host.codeowners(known.paths, CODEOWNERS, _NO_CHECK)}
