"""Reads a GitLab project with the pages and rules that it needs, and makes its facts.

A GraphQL request covers one project, because GitLab limits complexity to 250. The rules come from
REST, limited to those of the default branch. Each function returns its leaves, each a value or the
reason that it is missing, or one reason for all.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from factbook.integrations import code_host
from factbook.integrations.code_host import MergedPull
from factbook.integrations.gitlab.api import (
    HIDDEN,
    NO_BRANCH,
    NO_PREMIUM,
    NO_REPOSITORY,
    ApprovalRule,
    Approvals,
    GitlabApi,
    GitlabCount,
    GitlabNodePage,
    GitlabProject,
    Member,
    MergeRequest,
    ProjectData,
    ProjectSettings,
    ProtectedBranch,
    PushRule,
    ValidatedRepository,
    pick_part,
)
from factbook.integrations.integration import Collected, Leaves
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import build_path
from factbook.outbound.outcomes import Missing, Outcome, read_as, report_too_many

_MERGED_FIELDS: Final = """count
      nodes { iid title createdAt mergedAt author { username bot } }
      pageInfo { hasNextPage endCursor }"""
_MEMBERS_FIELDS: Final = """nodes { user { username } }
      pageInfo { hasNextPage endCursor }"""
_RELATIONS: Final = "relations: [DIRECT, INHERITED, INVITED_GROUPS]"

PROJECT_QUERY: Final = f"""query Project($path: ID!, $since: Time!) {{
  project(fullPath: $path) {{
    id
    fullPath
    mergeRequestsEnabled
    issuesEnabled
    languages {{ name share }}
    repository {{ empty rootRef tree {{ lastCommit {{ sha }} }} }}
    requests: mergeRequests {{ count }}
    openRequests: mergeRequests(state: opened) {{ count }}
    lastMonth: mergeRequests(state: merged, mergedAfter: $since) {{ count }}
    merged: mergeRequests(state: merged, sort: MERGED_AT_DESC, first: 100) {{
      {_MERGED_FIELDS}
    }}
    issues {{ count }}
    openIssues: issues(state: opened) {{ count }}
    closedIssues: issues(state: closed) {{ count }}
    closedLastMonth: issues(state: closed, closedAfter: $since) {{ count }}
    members: projectMembers({_RELATIONS}, first: 100) {{
      {_MEMBERS_FIELDS}
    }}
  }}
}}"""

MERGED_QUERY: Final = f"""query Merged($path: ID!, $after: String!) {{
  project(fullPath: $path) {{
    merged: mergeRequests(state: merged, sort: MERGED_AT_DESC, first: 100, after: $after) {{
      {_MERGED_FIELDS}
    }}
  }}
}}"""

MEMBERS_QUERY: Final = f"""query Members($path: ID!, $after: String!) {{
  project(fullPath: $path) {{
    members: projectMembers({_RELATIONS}, first: 100, after: $after) {{
      {_MEMBERS_FIELDS}
    }}
  }}
}}"""

# A separate request: the Community Edition refuses a whole document with this field.
CODEOWNERS_QUERY: Final = """query Codeowners($path: ID!) {
  project(fullPath: $path) {
    repository { validateCodeownerFile { total } }
  }
}"""


T = TypeVar("T")

MOST_MEMBERS: Final = 1_000
_MOST_MEMBER_PAGES: Final = MOST_MEMBERS // 100
# 5,000 merge requests per month; beyond that, a figure would take too long.
MOST_PAGES: Final = 50
MOST_MERGED: Final = 100 * MOST_PAGES

_TOO_MANY_MERGED: Final = report_too_many(MOST_MERGED, "merged merge requests to read for 30 days")
_TOO_MANY_MEMBERS: Final = report_too_many(MOST_MEMBERS, "members, and GitLab does not count them")
_GONE: Final = Missing(Outcome.NOT_FOUND, "no such project, or hidden from the credential")
# Fields that a project can be read without.
_OPTIONAL: Final = frozenset(
    ("project", field.encode_name)
    for field in msgspec.structs.fields(GitlabProject)
    if field.name not in {"id", "full_path"}
)


class _PagedField(NamedTuple, Generic[T]):
    """Connection of a project: its name, and the query for its next page."""

    name: str
    document: str
    type: type[GitlabNodePage[T]]


_MERGED: Final = _PagedField("merged", MERGED_QUERY, GitlabNodePage[MergeRequest])
_MEMBERS: Final = _PagedField("members", MEMBERS_QUERY, GitlabNodePage[Member])


async def find_project(api: GitlabApi, name: str, since: str) -> ProjectData | Missing:
    """The project with this current or former name, or the reason that it is missing.

    GraphQL does not know former names and returns null for hidden projects; REST redirects from
    former names.
    """
    found = await _ask_project(api, name, since)
    if found is not None:
        return found
    known = await api.one(build_path("projects", name), ProjectSettings)
    if isinstance(known, Missing):
        return _GONE if known.outcome is Outcome.NOT_FOUND else known
    if known.path_with_namespace == name:
        return _GONE
    return await _ask_project(api, known.path_with_namespace, since) or _GONE


async def complete_project(api: GitlabApi, found: ProjectData, cutoff: int, *, bots: bool) -> None:
    """Add the pages that the figures need, or the reasons that they cannot be read."""
    await _complete_merged(api, found, cutoff, bots=bots)
    await _complete_members(api, found)


async def _complete_merged(api: GitlabApi, found: ProjectData, cutoff: int, *, bots: bool) -> None:
    what = f"merged:{found.project.number}"
    for page in range(1, MOST_PAGES + 1):
        merged = found.project.merged
        if merged is None or not _lacks_merged(merged, cutoff, bots=bots):
            return
        more: GitlabNodePage[MergeRequest] | Missing = _TOO_MANY_MERGED
        if page == MOST_PAGES:
            await note_exceeded_limit(api.memory, what, MOST_MERGED, api.now)
        elif page > 1 or not await exceeds_noted_limit(api.memory, what, MOST_MERGED, api.now):
            more = await _extend_connection(api, found, _MERGED, merged)
        if isinstance(more, Missing):
            found.errors[_MERGED.name] = more
            return
        found.project.merged = more


async def _complete_members(api: GitlabApi, found: ProjectData) -> None:
    what = f"members:{found.project.number}"
    for page in range(1, _MOST_MEMBER_PAGES + 1):
        members = found.project.members
        if members is None or not members.page_info.has_next_page:
            return
        is_noted = page == 1 and await exceeds_noted_limit(api.memory, what, MOST_MEMBERS, api.now)
        if is_noted or page == _MOST_MEMBER_PAGES:
            found.members = await _count_members(api, found.project)
            if not is_noted:
                await note_exceeded_limit(api.memory, what, MOST_MEMBERS, api.now)
            return
        more = await _extend_connection(api, found, _MEMBERS, members)
        if isinstance(more, Missing):
            found.errors[_MEMBERS.name] = more
            return
        found.project.members = more


async def count_codeowners_errors(api: GitlabApi, name: str) -> int | Missing:
    """The number of errors in an existing CODEOWNERS file, or the reason that it is unknown."""
    told = await api.ask(CODEOWNERS_QUERY, path=name)
    missing = told.failure or next(iter(told.errors.values()), None)
    if missing:
        return missing
    checked = read_as(pick_part(told.data, "project", "repository"), ValidatedRepository)
    if isinstance(checked, Missing):
        return checked
    validation = checked.validate_codeowner_file
    return validation.total if validation else NO_PREMIUM


def list_gitlab_merged_pulls(connection: GitlabNodePage[MergeRequest]) -> Iterator[MergedPull]:
    """The merge requests with a known time, each once: a list may shift between two pages.

    A generator, as most pages don't need the result (`is_population_complete`).
    """
    known = {one.iid: one for one in connection.known}
    for one in known.values():
        if one.merged_at is not None:
            yield _make_gitlab_pull(one, one.merged_at)


def _make_gitlab_pull(one: MergeRequest, moment: datetime) -> MergedPull:
    merged_at = code_host.convert_to_milliseconds(moment)
    return MergedPull(
        0,
        one.title,
        one.author.username if one.author else None,
        one.author is not None and one.author.bot,
        code_host.convert_to_milliseconds(one.created_at),
        merged_at,
        merged_at,
    )


async def _ask_project(api: GitlabApi, name: str, since: str) -> ProjectData | Missing | None:
    """The project with this name; None if GraphQL finds none."""
    told = await api.ask(PROJECT_QUERY, optional=_OPTIONAL, path=name, since=since)
    if told.failure or told.data.get("project") is None:
        return told.failure or told.errors.get("")
    project = read_as(told.data["project"], GitlabProject)
    return project if isinstance(project, Missing) else ProjectData(project, told.errors)


async def _extend_connection(
    api: GitlabApi, found: ProjectData, field: _PagedField[T], before: GitlabNodePage[T]
) -> GitlabNodePage[T] | Missing:
    """The connection extended by its next page."""
    after = before.page_info.end_cursor or ""
    told = await api.ask(field.document, path=found.project.full_path, after=after)
    missing = told.failure or told.errors.get("") or told.errors.get(field.name)
    if missing:
        return missing
    more = read_as(pick_part(told.data, "project", field.name), field.type)
    if isinstance(more, Missing):
        return more
    return GitlabNodePage([*before.nodes, *more.nodes], more.page_info, before.count)


async def _count_members(api: GitlabApi, project: GitlabProject) -> int | Missing:
    """The number of members, from a REST header, which GitLab omits for long lists."""
    answer = await api.get(f"{build_path('projects', project.number)}/members/all", per_page=1)
    total = answer.headers.get("x-total", "")
    if answer.ok and re.fullmatch(r"\d{1,9}", total, re.ASCII):
        return int(total)
    return _TOO_MANY_MEMBERS if answer.ok else answer.missing


def _lacks_merged(connection: GitlabNodePage[MergeRequest], cutoff: int, *, bots: bool) -> bool:
    """True if the population needs later pages. Rows are sorted by merge time, newest first."""
    if not connection.page_info.has_next_page or not connection.known:
        return False
    last = connection.known[-1].merged_at
    if last is None:
        return False  # Those without a time come last.
    pulls = list_gitlab_merged_pulls(connection)
    return not code_host.is_population_complete(
        pulls, code_host.convert_to_milliseconds(last), cutoff, bots=bots
    )


# A thousand rules.
MOST_RULE_PAGES: Final = 10

_NO_PUSH_RULE: Final = PushRule(0, None)


@dataclass
class ProjectRules:
    """Rules of one project; each kind is a value or the reason for its absence."""

    settings: ProjectSettings | Missing
    branches: list[ProtectedBranch] | Missing
    approvals: Approvals | Missing
    approval_rules: list[ApprovalRule] | Missing
    push_rule: PushRule | Missing


async def get_project_rules(api: GitlabApi, number: str) -> ProjectRules:
    """The rules of the project with this id."""
    project = build_path("projects", number)
    settings, branches, approvals, approval_rules, push_answer = await asyncio.gather(
        api.one(project, ProjectSettings),
        api.every(f"{project}/protected_branches", list[ProtectedBranch], pages=MOST_RULE_PAGES),
        api.one(f"{project}/approvals", Approvals),
        api.every(f"{project}/approval_rules", list[ApprovalRule], pages=MOST_RULE_PAGES),
        api.get(f"{project}/push_rule"),
    )
    # GitLab returns null if the rule was never set.
    was_never_set = push_answer.ok and push_answer.data is None
    push_rule = _NO_PUSH_RULE if was_never_set else push_answer.read_as(PushRule)
    return ProjectRules(
        _treat_as_hidden(settings, "the project's settings"),
        _treat_as_hidden(branches, "protected branches"),
        _treat_as_premium(approvals, "settings of approvals"),
        _treat_as_premium(approval_rules, "approval rules"),
        _treat_as_premium(push_rule, "push rules"),
    )


def list_fitting_branches(branches: list[ProtectedBranch], branch: str) -> list[ProtectedBranch]:
    """The protected branches whose name or wildcard matches the branch."""
    return [one for one in branches if matches_branch(one.name, branch)]


def matches_branch(pattern: str, name: str) -> bool:
    """True if the name matches the pattern, in which a star matches any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *middle, last = rest
    if not name.startswith(first):
        return False
    at = len(first)
    for text in middle:
        found = name.find(text, at)
        if found < 0:
            return False
        at = found + len(text)
    return name.endswith(last) and at + len(last) <= len(name)


def allows_force_pushes(fitting: list[ProtectedBranch]) -> bool:
    """True without rules, or if a rule allows it; rules inherited from a group take precedence."""
    of_groups = [one for one in fitting if one.inherited]
    return not fitting or any(one.allow_force_push for one in of_groups or fitting)


def requires_code_owners(fitting: list[ProtectedBranch]) -> bool | None:
    """True if any rule requires a code owner's approval; None if GitLab doesn't report it."""
    demands = {one.code_owner_approval_required for one in fitting}
    return True if True in demands else None if None in demands else False


def count_required_approvals(rules: list[ApprovalRule], branch: str, *, protected: bool) -> int:
    """The highest number of approvals that a rule requires for merges into the branch.

    Report rules don't count, as they apply only to the findings of a report.
    """
    counts = []
    for rule in rules:
        if rule.rule_type == "report_approver":
            continue
        patterns = [protected_branch.name for protected_branch in rule.protected_branches]
        if rule.applies_to_all_protected_branches:
            applies = protected
        else:
            applies = not patterns or any(matches_branch(pattern, branch) for pattern in patterns)
        if applies:
            counts.append(rule.approvals_required)
    return max(counts, default=0)


def _treat_as_premium(found: T | Missing, what: str) -> T | Missing:
    """The result, with 404 read as a feature that the plan or edition lacks."""
    if isinstance(found, Missing) and found.outcome is Outcome.NOT_FOUND:
        return NO_PREMIUM
    return _treat_as_hidden(found, what)


def _treat_as_hidden(found: T | Missing, what: str) -> T | Missing:
    """The result, with 404 read as hidden, since the project exists."""
    if isinstance(found, Missing) and found.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}:
        return Missing(Outcome.DENIED, f"the credential may not read {what}")
    return found


CODEOWNERS: Final = frozenset({"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"})
# Only `ff` makes no merge commits; both methods require an up-to-date branch.
_FAST_FORWARD: Final = "ff"
_UP_TO_DATE: Final = frozenset({_FAST_FORWARD, "rebase_merge"})

_OFF: Final = Missing(Outcome.FEATURE_OFF, "switched off, or hidden from the credential")
_EMPTY: Final = Missing(Outcome.NOT_APPLICABLE, "the repository is empty")
_TOO_MANY_TO_LIST: Final = report_too_many(MOST_MEMBERS, "members to list")
_NO_SUCH_RULE: Final = Missing(Outcome.NOT_APPLICABLE, "GitLab has no such rule")


@dataclass
class GitlabSnapshot:
    """Data collected about one project; `cutoff` is 30 days ago.

    `codeowners`: the number of errors in the CODEOWNERS file, if there is one.
    """

    found: ProjectData
    paths: list[str] | Missing
    rules: ProjectRules
    cutoff: int
    codeowners: int | Missing = 0
    bots: bool = True

    @property
    def has_codeowners(self) -> bool:
        """True if there is a CODEOWNERS file where GitLab looks for it."""
        return isinstance(self.paths, list) and not CODEOWNERS.isdisjoint(self.paths)

    @cached_property
    def merging(self) -> Leaves | Missing:
        """The facts of the merged merge requests, by group."""
        project = self.found.project
        if project.merge_requests_enabled is False:
            return _OFF
        if project.merged is None or "merged" in self.found.errors:
            return self.found.errors.get("merged", HIDDEN)
        return code_host.make_merge_figures(
            list_gitlab_merged_pulls(project.merged), self.cutoff, bots=self.bots
        )

    @cached_property
    def branch(self) -> str | Missing:
        """The default branch."""
        repository = self.found.project.repository
        if repository is None:
            return self.found.errors.get("repository", NO_REPOSITORY)
        if repository.empty or not repository.root_ref:
            return _EMPTY if repository.empty else NO_BRANCH
        return repository.root_ref

    @cached_property
    def protection(self) -> list[ProtectedBranch] | Missing:
        """The rules that apply to the default branch."""
        if isinstance(self.branch, Missing):
            return self.branch
        branches = self.rules.branches
        return (
            branches
            if isinstance(branches, Missing)
            else list_fitting_branches(branches, self.branch)
        )


def make_gitlab_facts(known: GitlabSnapshot) -> Collected:
    """The facts of all shapes that GitLab fills."""
    return Collected.of(
        code_host.make_code_host_groups(
            merging=known.merging,
            pull_requests=_make_gitlab_pull_requests(known),
            issues=_make_gitlab_issues(known),
            collaboration=_make_gitlab_collaboration(known),
            protection=_make_gitlab_branch_protection(known),
            review=_make_gitlab_reviews(known)
            | code_host.make_codeowners_leaves(known.paths, CODEOWNERS, known.codeowners),
            paths=known.paths,
        )
    )


def _make_gitlab_pull_requests(known: GitlabSnapshot) -> Leaves | Missing:
    project = known.found.project
    if project.merge_requests_enabled is False:
        return _OFF
    merged: int | Missing = known.found.errors.get("merged", HIDDEN)
    if project.merged is not None and project.merged.count is not None:
        merged = project.merged.count
    return code_host.make_pull_request_leaves(
        _get_gitlab_count(known, project.requests, "requests"),
        merged,
        _get_gitlab_count(known, project.open_requests, "openRequests"),
        _get_gitlab_count(known, project.last_month, "lastMonth"),
    )


def _make_gitlab_issues(known: GitlabSnapshot) -> Leaves | Missing:
    project = known.found.project
    if project.issues_enabled is False:
        return _OFF
    return {
        "total": _get_gitlab_count(known, project.issues, "issues"),
        "open": _get_gitlab_count(known, project.open_issues, "openIssues"),
        "closed": _get_gitlab_count(known, project.closed_issues, "closedIssues"),
        "closedLastMonth": _get_gitlab_count(known, project.closed_last_month, "closedLastMonth"),
    }


def _make_gitlab_collaboration(known: GitlabSnapshot) -> Leaves:
    found = known.found
    languages: Any = found.errors.get("languages", HIDDEN)
    if found.project.languages is not None:
        by_share = sorted(found.project.languages, key=lambda one: one.share or 0, reverse=True)
        languages = [language.name for language in by_share]
    return {"languages": languages, **_make_gitlab_collaborators(known)}


def _make_gitlab_collaborators(known: GitlabSnapshot) -> Leaves:
    members = known.found.project.members
    if members is None or "members" in known.found.errors:
        missing = known.found.errors.get("members", HIDDEN)
        return code_host.make_collaborator_leaves(missing, missing)
    if known.found.members is not None:
        return code_host.make_collaborator_leaves(_TOO_MANY_TO_LIST, known.found.members)
    names = sorted({member.user.username for member in members.known if member.user})
    return code_host.make_collaborator_leaves(names, len(names))


def _make_gitlab_branch_protection(known: GitlabSnapshot) -> Leaves | Missing:
    if isinstance(known.branch, Missing):
        return known.branch
    fitting, settings, push = known.protection, known.rules.settings, known.rules.push_rule
    unread = fitting if isinstance(fitting, Missing) else None
    rule = [] if isinstance(fitting, Missing) else fitting
    method = settings if isinstance(settings, Missing) else settings.merge_method or HIDDEN
    signatures: bool | Missing
    if isinstance(push, Missing):
        signatures = push
    elif push.reject_unsigned_commits is msgspec.UNSET:
        signatures = NO_PREMIUM
    else:
        signatures = bool(push.reject_unsigned_commits)
    return {
        "enabled": unread or bool(rule),
        "enforceAdmins": _NO_SUCH_RULE,
        # A protected branch cannot be deleted.
        "allowDeletions": unread or not rule,
        "requiredLinearHistory": (
            method if isinstance(method, Missing) else method == _FAST_FORWARD
        ),
        "allowForcePushes": unread or allows_force_pushes(rule),
        "blockCreations": _NO_SUCH_RULE,
        "requiredSignatures": signatures,
    }


def _make_gitlab_reviews(known: GitlabSnapshot) -> Leaves:
    branch, fitting, told = known.branch, known.protection, known.rules.approvals
    if isinstance(branch, Missing):
        return dict.fromkeys(_REVIEWS, branch)
    owners: Any = fitting if isinstance(fitting, Missing) else requires_code_owners(fitting)
    stale = told if isinstance(told, Missing) else bool(told.reset_approvals_on_push)
    last: Any = told
    if not isinstance(told, Missing):
        last = bool(told.merge_requests_disable_committers_approval)
    values = (
        stale,
        NO_PREMIUM if owners is None else owners,
        last,
        _requires_current_branch(known),
    )
    return dict(zip(_REVIEWS, (*values, _count_approvals(known, branch)), strict=True))


_REVIEWS: Final = (
    "dismissStaleReviews",
    "requireCodeOwnerReviews",
    "requireLastPushApproval",
    "strictRequiredStatusChecks",
    "requiredApprovingReviewCount",
)


def _requires_current_branch(known: GitlabSnapshot) -> bool | Missing:
    """True if a pipeline must succeed on the merge result with the current target branch."""
    settings = known.rules.settings
    if isinstance(settings, Missing):
        return settings
    if not settings.only_allow_merge_if_pipeline_succeeds:
        return HIDDEN if settings.only_allow_merge_if_pipeline_succeeds is None else False
    if settings.merge_trains_enabled:
        return True
    return HIDDEN if settings.merge_method is None else settings.merge_method in _UP_TO_DATE


def _count_approvals(known: GitlabSnapshot, branch: str) -> int | Missing:
    told, fitting = known.rules.approval_rules, known.protection
    if isinstance(told, Missing):
        return told
    if isinstance(fitting, Missing):
        if any(rule.applies_to_all_protected_branches for rule in told):
            return fitting
        fitting = []
    return count_required_approvals(told, branch, protected=bool(fitting))


def _get_gitlab_count(
    known: GitlabSnapshot, count: GitlabCount | None, field: str
) -> int | Missing:
    return known.found.errors.get(field, HIDDEN) if count is None else count.count
