"""Collection from a Gitea instance: a batch of repositories, from request to facts."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from factbook.integrations import code_host, file_tree, merge_times
from factbook.integrations.code_host import ANYTHING
from factbook.integrations.file_tree import Paths, RepositoryTree
from factbook.integrations.gitea import facts, protection, pulls
from factbook.integrations.gitea.answers import (
    GiteaBranch,
    GiteaIssue,
    GiteaRepository,
    GiteaTreePage,
    GiteaUser,
    ProtectionRule,
)
from factbook.integrations.gitea.api import MOST_PAGES, PAGE, GiteaApi
from factbook.integrations.gitea.facts import GiteaSnapshot
from factbook.integrations.gitea.options import GiteaOptions
from factbook.integrations.integration import Collected, Leaves, each
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, report_too_many

# So few that a host which lets every call run into its timeout is given up within a batch's time.
BATCH: Final = 10
MOST_COLLABORATORS: Final = 1_000

_TOO_MANY_CLOSED: Final = report_too_many(MOST_PAGES, "pages of closed issues to read for 30 days")
_TOO_MANY_COLLABORATORS: Final = report_too_many(MOST_COLLABORATORS, "collaborators to list")

_NO_BRANCH: Final = Missing(Outcome.NOT_APPLICABLE, "the repository is empty")
_BRANCH_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the default branch")
_RULES_HIDDEN: Final = Missing(Outcome.DENIED, "rules of branches need administration")
_COLLABORATORS_HIDDEN: Final = Missing(Outcome.DENIED, "collaborators need write access")
# What a server gives at most unless it is configured otherwise; 200,000 entries.
_TREE_PAGE: Final = 1_000
MOST_TREE_PAGES: Final = 200

_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_TOO_LARGE: Final = Missing(Outcome.TOO_LARGE, f"the tree has more than {MOST_TREE_PAGES} pages")


async def collect(
    options: GiteaOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (`owner/name`) at this time, or the reason for their absence."""
    api = GiteaApi(client, options, memory, now)
    return await each(targets, partial(_collected, api))


async def read(
    options: GiteaOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file at this path, its bytes as the body; fetched again only if it has changed."""
    url = f"{options.rest}{build_path('repos', *target.split('/'), 'raw', *file.split('/'))}"
    return await client.get(url, headers=ANYTHING, memory=memory, decode=False, follow=True)


async def _collected(api: GiteaApi, target: str) -> Collected:
    # An old name leads to the repository; it is asked for by its present one from then on.
    found = await api.one(build_path("repos", *target.split("/")), GiteaRepository, None)
    if isinstance(found, Missing):
        return Collected(missing={"": found})
    return facts.collected(await _known(api, found))


async def _known(api: GiteaApi, repository: GiteaRepository) -> GiteaSnapshot:
    """The data collected about one repository."""
    cutoff = api.now - merge_times.MONTH
    known = GiteaSnapshot(repository, cutoff)
    own = build_path("repos", *repository.full_name.split("/"))
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
    known.paths = await _paths(api, repository, known.branch)
    return known


async def _closed_last_month(api: GiteaApi, target: str, cutoff: int) -> int | Missing:
    """Issues closed since `cutoff`; closing updates an issue, so filtering by update loses none."""
    since = merge_times.timestamp(cutoff)
    found = await api.pages(
        target, list[GiteaIssue], what="month", type="issues", state="closed", since=since
    )
    if isinstance(found, Missing):
        return found
    issues, whole = found
    if not whole:
        return _TOO_MANY_CLOSED
    return len(
        {
            issue.number
            for issue in issues.rows
            if issue.pull_request is None
            and issue.closed_at
            and merge_times.milliseconds(issue.closed_at) >= cutoff
        }
    )


async def _collaborators(api: GiteaApi, target: str) -> Leaves | Missing:
    most = MOST_COLLABORATORS // PAGE
    found = await api.pages(target, list[GiteaUser], _COLLABORATORS_HIDDEN, what="all", most=most)
    if isinstance(found, Missing):
        return found
    users, whole = found
    logins = sorted({user.login for user in users.rows})
    count: int | Missing = len(logins) if whole else _TOO_MANY_COLLABORATORS
    return code_host.collaborators(
        logins if whole else _TOO_MANY_COLLABORATORS, count if users.total is None else users.total
    )


async def _branch(api: GiteaApi, own: str, repository: GiteaRepository) -> GiteaBranch | Missing:
    name = repository.default_branch
    if repository.empty:
        return _NO_BRANCH
    if name in {"", ".", ".."}:
        return UNUSABLE
    return await api.one(f"{own}{build_path('branches', name)}", GiteaBranch, _BRANCH_HIDDEN)


async def paths_of(api: GiteaApi, repository: GiteaRepository) -> Paths | Missing:
    """The paths of all files of the default branch, unordered."""
    own = build_path("repos", *repository.full_name.split("/"))
    return await _paths(api, repository, await _branch(api, own, repository))


async def _rule(
    api: GiteaApi, own: str, repository: GiteaRepository, branch: GiteaBranch
) -> ProtectionRule | Missing:
    rules = await api.one(f"{own}/branch_protections", list[ProtectionRule], _RULES_HIDDEN)
    if isinstance(rules, Missing):
        return rules
    return protection.effective(branch, repository.default_branch, rules)


async def _paths(
    api: GiteaApi, repository: GiteaRepository, branch: GiteaBranch | Missing
) -> Paths | Missing:
    """The paths of all files of the default branch, unordered; none for an empty repository."""
    if repository.empty:
        return []
    if isinstance(branch, Missing):
        return branch
    oid = branch.commit.id
    target = build_path("repos", *repository.full_name.split("/"), "git", "trees", oid)
    pages = partial(_tree, api, target)
    tree = RepositoryTree(repository.id, oid, repository.full_name, pages, MOST_TREE_PAGES)
    return await file_tree.read(api.memory, tree, api.clones, api.now)


async def _tree(api: GiteaApi, target: str) -> Paths | Missing:
    found: Paths = []
    for number in range(1, MOST_TREE_PAGES + 1):
        tree = await api.one(
            target,
            GiteaTreePage,
            _HIDDEN,
            recursive="true",
            page=number,
            per_page=_TREE_PAGE,
        )
        if isinstance(tree, Missing):
            return tree
        found += (entry.path for entry in tree.tree if entry.type == "blob")
        if not tree.truncated:
            return found
        if (tree.total_count or 0) > MOST_TREE_PAGES * len(tree.tree):
            break
    return _TOO_LARGE
