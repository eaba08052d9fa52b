"""Gitea and Forgejo: the code-host shape, branch protection, and the files of a repository.

Protection of the default branch comes from the branch itself and from its protection rule.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from factbook.integrations import code_host
from factbook.integrations.code_host import ANYTHING, Paths, RepositoryTree
from factbook.integrations.gitea import api as gitea_api
from factbook.integrations.gitea.api import (
    MOST_PAGES,
    PAGE,
    Closed,
    GiteaApi,
    GiteaBranch,
    GiteaIssue,
    GiteaOptions,
    GiteaRepository,
    GiteaTreePage,
    GiteaUser,
    ProtectionRule,
    find_gitea_target,
)
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Collected,
    Instance,
    Integration,
    Leaves,
    Probe,
    make_vendor,
    run_for_each,
    split_targets,
    sum_counts,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.git import make_basic_auth
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, report_too_many

_NO_SUCH_RULE: Final = Missing(Outcome.NOT_APPLICABLE, "Gitea has no such rule")
_NOT_SAID: Final = Missing(Outcome.NOT_APPLICABLE, "this version of the server does not say")
_NOT_LISTED: Final = Missing(Outcome.TRANSIENT, "the branch's rule is not among those listed")


class ProtectionLeaves(NamedTuple):
    """The leaves of branchProtection and codeReview."""

    protection: Leaves
    review: Leaves


# No rule applies. Gitea refuses to delete a default branch anyway, as other code hosts do, but the
# leaf is about rules.
UNPROTECTED: Final = ProtectionLeaves(
    {
        "enabled": False,
        "enforceAdmins": False,
        "allowDeletions": True,
        "requiredLinearHistory": False,
        "allowForcePushes": True,
        "blockCreations": False,
        "requiredSignatures": False,
    },
    {
        "dismissStaleReviews": False,
        "requireCodeOwnerReviews": False,
        "requireLastPushApproval": False,
        "strictRequiredStatusChecks": False,
        "requiredApprovingReviewCount": 0,
    },
)


def find_effective_rule(
    branch: GiteaBranch, name: str, rules: Iterable[ProtectionRule]
) -> ProtectionRule | Missing:
    """The repository's rule that protects the branch `name`."""
    wanted = branch.effective_branch_protection_name or name
    found = (rule for rule in rules if wanted in {rule.rule_name, rule.branch_name})
    return next(found, _NOT_LISTED)


def make_protection_leaves(branch: GiteaBranch, rule: ProtectionRule | Missing) -> ProtectionLeaves:
    """The protection of the branch; `rule` is ignored if the branch is not protected."""
    if not branch.protected:
        return UNPROTECTED
    return ProtectionLeaves(_make_gitea_protection(rule), _make_gitea_review(branch, rule))


def _make_gitea_protection(rule: ProtectionRule | Missing) -> Leaves:
    bound: bool | Missing = _get_rule_value(rule, "block_admin_merge_override")
    if bound is _NOT_SAID:
        bound = _get_rule_value(rule, "apply_to_admins")
    return {
        "enabled": True,
        "enforceAdmins": bound,
        # A protected branch cannot be deleted.
        "allowDeletions": False,
        "requiredLinearHistory": _NO_SUCH_RULE,
        # Without this setting, a protected branch refuses all force pushes.
        "allowForcePushes": (
            rule if isinstance(rule, Missing) else rule.enable_force_push or False
        ),
        "blockCreations": _NO_SUCH_RULE,
        "requiredSignatures": _get_rule_value(rule, "require_signed_commits"),
    }


def _make_gitea_review(branch: GiteaBranch, rule: ProtectionRule | Missing) -> Leaves:
    required = branch.required_approvals
    return {
        "dismissStaleReviews": _get_rule_value(rule, "dismiss_stale_approvals"),
        # Gitea asks code owners to review; this setting blocks the merge until they have.
        "requireCodeOwnerReviews": _get_rule_value(rule, "block_on_official_review_requests"),
        "requireLastPushApproval": _NO_SUCH_RULE,
        "strictRequiredStatusChecks": _requires_up_to_date(branch, rule),
        "requiredApprovingReviewCount": (
            _get_rule_value(rule, "required_approvals") if required is None else required
        ),
    }


def _requires_up_to_date(branch: GiteaBranch, rule: ProtectionRule | Missing) -> bool | Missing:
    """True if status checks and an up-to-date branch are required."""
    if branch.enable_status_check is False:
        return False
    checks = _get_rule_value(rule, "enable_status_check")
    outdated = _get_rule_value(rule, "block_on_outdated_branch")
    if checks is False or outdated is False:
        return False
    return next((one for one in (checks, outdated) if isinstance(one, Missing)), True)


def _get_rule_value(rule: ProtectionRule | Missing, name: str) -> Any:
    if isinstance(rule, Missing):
        return rule
    value = getattr(rule, name)
    return _NOT_SAID if value is None else value


# Only Forgejo reads the last one.
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
        if off := explain_no_pulls(self.repository):
            return off
        return (
            closed
            if isinstance(closed, Missing)
            else code_host.make_merge_figures(closed.merged, self.cutoff)
        )

    @cached_property
    def protection(self) -> ProtectionLeaves | Missing:
        """The leaves of branchProtection, and those of codeReview that rules decide."""
        branch = self.branch
        return branch if isinstance(branch, Missing) else make_protection_leaves(branch, self.rule)


def explain_no_pulls(repository: GiteaRepository) -> Missing | None:
    """The reason if the repository can't have pull requests."""
    if not repository.has_pull_requests:
        return _PULLS_OFF
    return _NO_PULLS if repository.mirror or repository.empty else None


def explain_no_issues(repository: GiteaRepository) -> Missing | None:
    """The reason if the repository can't have issues."""
    if not repository.has_issues:
        return _ISSUES_OFF
    return None if repository.external_tracker is None else _ISSUES_ELSEWHERE


def make_gitea_facts(known: GiteaSnapshot) -> Collected:
    """The facts of all shapes that Gitea fills."""
    protection = known.protection
    if isinstance(protection, Missing):
        review: Leaves = dict.fromkeys(UNPROTECTED.review, protection)
    else:
        review = protection.review
    owners = code_host.make_codeowners_leaves(known.paths, CODEOWNERS, _NO_CHECK)
    return Collected.of(
        code_host.make_code_host_groups(
            merging=known.merging,
            pull_requests=_make_gitea_pull_requests(known),
            issues=explain_no_issues(known.repository)
            or code_host.make_issue_leaves(
                known.open_issues, known.closed_issues, known.closed_last_month
            ),
            collaboration=_make_gitea_collaboration(known),
            protection=protection if isinstance(protection, Missing) else protection.protection,
            review={**review, **owners},
            paths=known.paths,
        )
    )


def _make_gitea_pull_requests(known: GiteaSnapshot) -> Leaves | Missing:
    closed = known.closed_pulls
    if off := explain_no_pulls(known.repository):
        return off
    if isinstance(closed, Missing):
        every, merged = sum_counts((known.open_pulls, closed)), closed
        return code_host.make_pull_request_leaves(every, merged, known.open_pulls, known.merging)
    every = sum_counts((known.open_pulls, closed.total))
    return code_host.make_pull_request_leaves(
        every, closed.ever_merged, known.open_pulls, known.merging
    )


def _make_gitea_collaboration(known: GiteaSnapshot) -> Leaves:
    sizes, who = known.languages, known.collaborators
    languages: list[str] | Missing = sizes if isinstance(sizes, Missing) else []
    if not isinstance(sizes, Missing):
        languages = sorted(sizes, key=lambda language: (-sizes[language], language))
    listed = code_host.make_collaborator_leaves(who, who) if isinstance(who, Missing) else who
    return {"languages": languages, **listed}


# Few enough that a batch ends in time even if every call to the host times out.
BATCH: Final = 10
MOST_COLLABORATORS: Final = 1_000

_TOO_MANY_CLOSED: Final = report_too_many(MOST_PAGES, "pages of closed issues to read for 30 days")
_TOO_MANY_COLLABORATORS: Final = report_too_many(MOST_COLLABORATORS, "collaborators to list")

_NO_BRANCH: Final = Missing(Outcome.NOT_APPLICABLE, "the repository is empty")
_BRANCH_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the default branch")
_RULES_HIDDEN: Final = Missing(Outcome.DENIED, "rules of branches need administration")
_COLLABORATORS_HIDDEN: Final = Missing(Outcome.DENIED, "collaborators need write access")
# A server's default maximum; with MOST_TREE_PAGES, 200,000 entries.
_TREE_PAGE: Final = 1_000
MOST_TREE_PAGES: Final = 200

_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_TOO_LARGE: Final = Missing(Outcome.TOO_LARGE, f"the tree has more than {MOST_TREE_PAGES} pages")


async def collect_gitea(
    options: GiteaOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """Facts about each target (`owner/name`), or the reason that they are missing."""
    api = GiteaApi(client, options, memory, now)
    return await run_for_each(targets, partial(_collect_repository, api))


async def read_gitea_file(
    options: GiteaOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """Read a file of the default branch into the body; fetched again only if it changed."""
    url = f"{options.rest}{build_path('repos', *target.split('/'), 'raw', *file.split('/'))}"
    return await client.get(url, headers=ANYTHING, memory=memory, decode=False, follow=True)


async def _collect_repository(api: GiteaApi, target: str) -> Collected:
    # A former name redirects to the repository; later calls use its current name.
    found = await api.one(build_path("repos", *target.split("/")), GiteaRepository, None)
    if isinstance(found, Missing):
        return Collected(missing={"": found})
    return make_gitea_facts(await _collect_snapshot(api, found))


async def _collect_snapshot(api: GiteaApi, repository: GiteaRepository) -> GiteaSnapshot:
    cutoff = api.now - code_host.MONTH
    known = GiteaSnapshot(repository, cutoff)
    own = build_path("repos", *repository.full_name.split("/"))
    if not explain_no_pulls(repository):
        known.closed_pulls = await gitea_api.get_closed_pulls(api, repository, cutoff)
        known.open_pulls = await api.total(f"{own}/pulls", state="open")
    if not explain_no_issues(repository):
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
    return find_effective_rule(branch, repository.default_branch, rules)


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


def _make_gitea_integration(instance: Instance[GiteaOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(
            f"Pull requests, issues, protection and files on {options.host}.",
            (options.slug, SOURCE_LOCATION),
        ),
        authorize=instance.credential({"authorization": f"token {options.token}"}),
        base_url=options.origin,
        further={
            options.git: instance.credential(make_basic_auth(options.token, "x-oauth-basic")),
        },
        # Gitea reports no rate limit, and many servers are small.
        calls_at_once=4,
        target=partial(find_gitea_target, options),
        batches=partial(split_targets, size=BATCH),
        collect=partial(collect_gitea, options),
        read=partial(read_gitea_file, options),
        probes=(
            Probe(
                right="read:repository",
                target=f"{options.rest}/repos/search",
                query={"limit": 1},
            ),
        ),
    )


INTEGRATION: Final = make_vendor(
    "gitea",
    "Gitea or Forgejo",
    GiteaOptions,
    _make_gitea_integration,
    ("codehost", "security.branchProtection", "repository"),
)
