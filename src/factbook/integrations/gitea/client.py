"""Collection from a Gitea instance: a batch of repositories, from request to facts."""

import asyncio
from collections.abc import Sequence
from typing import Final

from factbook.integrations import merge_times
from factbook.integrations.gitea import facts, protection, pulls, trees
from factbook.integrations.gitea.answers import (
    GiteaBranch,
    GiteaIssue,
    GiteaRepository,
    ProtectionRule,
    User,
)
from factbook.integrations.gitea.api import PAGE, GiteaApi
from factbook.integrations.gitea.facts import Collaborators, GiteaSnapshot
from factbook.integrations.gitea.options import Options
from factbook.integrations.integration import Collected
from factbook.outbound import HttpClient, Memory, path
from factbook.outbound.outcomes import TOO_MANY, UNUSABLE, Missing, Outcome

# So few that a host which lets every call run into its timeout is given up within a batch's time.
BATCH: Final = 10
MOST_COLLABORATORS: Final = 1_000

_NO_BRANCH: Final = Missing(Outcome.NOT_APPLICABLE, "the repository is empty")
_BRANCH_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the default branch")
_RULES_HIDDEN: Final = Missing(Outcome.DENIED, "rules of branches need administration")
_COLLABORATORS_HIDDEN: Final = Missing(Outcome.DENIED, "collaborators need write access")


async def collect(
    options: Options, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (`owner/name`) at this time, or why there are none."""
    api = GiteaApi(client, options, memory, now)
    async with asyncio.TaskGroup() as group:
        tasks = {target: group.create_task(_collected(api, target)) for target in targets}
    return {target: task.result() for target, task in tasks.items()}


async def _collected(api: GiteaApi, target: str) -> Collected:
    # An old name leads to the repository; it is asked for by its present one from then on.
    found = await api.one(path("repos", *target.split("/")), GiteaRepository, None)
    if isinstance(found, Missing):
        return Collected(missing={"": found})
    return facts.collected(await _known(api, found))


async def _known(api: GiteaApi, repository: GiteaRepository) -> GiteaSnapshot:
    """The data collected about one repository."""
    cutoff = api.now - merge_times.MONTH
    known = GiteaSnapshot(repository, cutoff)
    own = path("repos", *repository.full_name.split("/"))
    if not facts.without_pulls(repository):
        known.closed_pulls = await pulls.closed(api, repository, cutoff)
        known.open_pulls = await api.total(f"{own}/pulls", state="open")
    if not facts.without_issues(repository):
        issues = f"{own}/issues"
        known.open_issues = await api.total(issues, type="issues", state="open")
        known.closed_issues = await api.total(issues, type="issues", state="closed")
        known.closed_last_month = await _closed_last_month(api, issues, cutoff)
    known.languages = await api.one(f"{own}/languages", dict[str, int])
    known.collaborators = await _collaborators(api, f"{own}/collaborators")
    known.branch = await _branch(api, own, repository)
    if isinstance(known.branch, GiteaBranch) and known.branch.protected:
        known.rule = await _rule(api, own, repository, known.branch)
    known.paths = await trees.paths(api, repository, known.branch)
    return known


async def _closed_last_month(api: GiteaApi, target: str, cutoff: int) -> int | Missing:
    """Issues closed since; what was closed was updated then, so nothing is left out."""
    since = pulls.timestamp(cutoff)
    found = await api.pages(target, list[GiteaIssue], type="issues", state="closed", since=since)
    if isinstance(found, Missing):
        return found
    issues, whole = found
    if not whole:
        return TOO_MANY
    return len(
        {
            issue.number
            for issue in issues.rows
            if issue.pull_request is None
            and issue.closed_at
            and merge_times.milliseconds(issue.closed_at) >= cutoff
        }
    )


async def _collaborators(api: GiteaApi, target: str) -> Collaborators | Missing:
    most = MOST_COLLABORATORS // PAGE
    found = await api.pages(target, list[User], _COLLABORATORS_HIDDEN, most=most)
    if isinstance(found, Missing):
        return found
    users, whole = found
    logins = sorted({user.login for user in users.rows})
    count: int | Missing = len(logins) if whole else TOO_MANY
    return Collaborators(logins, count if users.total is None else users.total)


async def _branch(api: GiteaApi, own: str, repository: GiteaRepository) -> GiteaBranch | Missing:
    name = repository.default_branch
    if repository.empty:
        return _NO_BRANCH
    if name in {"", ".", ".."}:
        return UNUSABLE
    return await api.one(f"{own}{path('branches', name)}", GiteaBranch, _BRANCH_HIDDEN)


async def _rule(
    api: GiteaApi, own: str, repository: GiteaRepository, branch: GiteaBranch
) -> ProtectionRule | Missing:
    rules = await api.one(f"{own}/branch_protections", list[ProtectionRule], _RULES_HIDDEN)
    if isinstance(rules, Missing):
        return rules
    return protection.effective(branch, repository.default_branch, rules)
