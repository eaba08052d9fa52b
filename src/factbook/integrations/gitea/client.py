"""Collection from a Gitea instance: a batch of repositories, from request to facts."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from factbook.integrations import code_host
from factbook.integrations.code_host import ANYTHING, Paths, RepositoryTree
from factbook.integrations.gitea import api as gitea_api
from factbook.integrations.gitea import facts
from factbook.integrations.gitea.api import (
    MOST_PAGES,
    PAGE,
    GiteaApi,
    GiteaBranch,
    GiteaIssue,
    GiteaRepository,
    GiteaTreePage,
    GiteaUser,
    ProtectionRule,
)
from factbook.integrations.gitea.facts import GiteaSnapshot
from factbook.integrations.gitea.options import GiteaOptions
from factbook.integrations.integration import Collected, Leaves, run_for_each
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


async def collect_gitea(
    options: GiteaOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (`owner/name`) at this time, or the reason for their absence."""
    api = GiteaApi(client, options, memory, now)
    return await run_for_each(targets, partial(_collect_repository, api))


async def read_gitea_file(
    options: GiteaOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file at this path, its bytes as the body; fetched again only if it has changed."""
    url = f"{options.rest}{build_path('repos', *target.split('/'), 'raw', *file.split('/'))}"
    return await client.get(url, headers=ANYTHING, memory=memory, decode=False, follow=True)


async def _collect_repository(api: GiteaApi, target: str) -> Collected:
    # An old name leads to the repository; it is asked for by its present one from then on.
    found = await api.one(build_path("repos", *target.split("/")), GiteaRepository, None)
    if isinstance(found, Missing):
        return Collected(missing={"": found})
    return facts.make_gitea_facts(await _collect_snapshot(api, found))


async def _collect_snapshot(api: GiteaApi, repository: GiteaRepository) -> GiteaSnapshot:
    """The data collected about one repository."""
    cutoff = api.now - code_host.MONTH
    known = GiteaSnapshot(repository, cutoff)
    own = build_path("repos", *repository.full_name.split("/"))
    if not facts.explain_no_pulls(repository):
        known.closed_pulls = await gitea_api.get_closed_pulls(api, repository, cutoff)
        known.open_pulls = await api.total(f"{own}/pulls", state="open")
    if not facts.explain_no_issues(repository):
        issues = f"{own}/issues"
        known.open_issues = await api.total(issues, type="issues", state="open")
        known.closed_issues = await api.total(issues, type="issues", state="closed")
        known.closed_last_month = await _count_closed_last_month(api, issues, cutoff)
    known.languages = await api.one(f"{own}/languages", dict[str, int])
    known.collaborators = await _list_collaborators(api, f"{own}/collaborators")
    known.branch = await _get_branch(api, own, repository)
    if isinstance(known.branch, GiteaBranch) and known.branch.protected:
        known.rule = await _get_rule(api, own, repository, known.branch)
    known.paths = await _list_branch_paths(api, repository, known.branch)
    return known


async def _count_closed_last_month(api: GiteaApi, target: str, cutoff: int) -> int | Missing:
    """Issues closed since `cutoff`; closing updates an issue, so filtering by update loses none."""
    since = code_host.format_timestamp(cutoff)
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
            and code_host.convert_to_milliseconds(issue.closed_at) >= cutoff
        }
    )


async def _list_collaborators(api: GiteaApi, target: str) -> Leaves | Missing:
    most = MOST_COLLABORATORS // PAGE
    found = await api.pages(target, list[GiteaUser], _COLLABORATORS_HIDDEN, what="all", most=most)
    if isinstance(found, Missing):
        return found
    users, whole = found
    logins = sorted({user.login for user in users.rows})
    count: int | Missing = len(logins) if whole else _TOO_MANY_COLLABORATORS
    return code_host.make_collaborator_leaves(
        logins if whole else _TOO_MANY_COLLABORATORS, count if users.total is None else users.total
    )


async def _get_branch(
    api: GiteaApi, own: str, repository: GiteaRepository
) -> GiteaBranch | Missing:
    name = repository.default_branch
    if repository.empty:
        return _NO_BRANCH
    if name in {"", ".", ".."}:
        return UNUSABLE
    return await api.one(f"{own}{build_path('branches', name)}", GiteaBranch, _BRANCH_HIDDEN)


async def list_gitea_paths(api: GiteaApi, repository: GiteaRepository) -> Paths | Missing:
    """The paths of all files of the default branch, unordered."""
    own = build_path("repos", *repository.full_name.split("/"))
    return await _list_branch_paths(api, repository, await _get_branch(api, own, repository))


async def _get_rule(
    api: GiteaApi, own: str, repository: GiteaRepository, branch: GiteaBranch
) -> ProtectionRule | Missing:
    rules = await api.one(f"{own}/branch_protections", list[ProtectionRule], _RULES_HIDDEN)
    if isinstance(rules, Missing):
        return rules
    return facts.find_effective_rule(branch, repository.default_branch, rules)


async def _list_branch_paths(
    api: GiteaApi, repository: GiteaRepository, branch: GiteaBranch | Missing
) -> Paths | Missing:
    """The paths of all files of the default branch, unordered; none for an empty repository."""
    if repository.empty:
        return []
    if isinstance(branch, Missing):
        return branch
    oid = branch.commit.id
    target = build_path("repos", *repository.full_name.split("/"), "git", "trees", oid)
    pages = partial(_list_tree_pages, api, target)
    tree = RepositoryTree(repository.id, oid, repository.full_name, pages, MOST_TREE_PAGES)
    return await code_host.read_file_tree(api.memory, tree, api.clones, api.now)


async def _list_tree_pages(api: GiteaApi, target: str) -> Paths | Missing:
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
