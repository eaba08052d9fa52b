"""Reads one project, by its present or a former name, with the pages and the rules that it needs.

GraphQL reads one project for each request, as the limit on complexity is 250. The rules come from
REST; those that apply to the default branch are selected.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from factbook.integrations import code_host
from factbook.integrations.code_host import MergedPull
from factbook.integrations.gitlab.api import (
    NO_PREMIUM,
    ApprovalRule,
    Approvals,
    GitlabApi,
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

# A field of its own request: the Community Edition does not know it and refuses the whole document.
CODEOWNERS_QUERY: Final = """query Codeowners($path: ID!) {
  project(fullPath: $path) {
    repository { validateCodeownerFile { total } }
  }
}"""


T = TypeVar("T")

MOST_MEMBERS: Final = 1_000
_MOST_MEMBER_PAGES: Final = MOST_MEMBERS // 100
# 5,000 merge requests of one month: beyond it there is no figure rather than a late one.
MOST_PAGES: Final = 50
MOST_MERGED: Final = 100 * MOST_PAGES

_TOO_MANY_MERGED: Final = report_too_many(MOST_MERGED, "merged merge requests to read for 30 days")
_TOO_MANY_MEMBERS: Final = report_too_many(MOST_MEMBERS, "members, and GitLab does not count them")
_GONE: Final = Missing(Outcome.NOT_FOUND, "no such project, or hidden from the credential")
# Fields without which something is known of a project.
_OPTIONAL: Final = frozenset(
    ("project", field.encode_name)
    for field in msgspec.structs.fields(GitlabProject)
    if field.name not in {"id", "full_path"}
)


class _PagedField(NamedTuple, Generic[T]):
    """Connection of a project: its name, and the document that requests its next page."""

    name: str
    document: str
    type: type[GitlabNodePage[T]]


_MERGED: Final = _PagedField("merged", MERGED_QUERY, GitlabNodePage[MergeRequest])
_MEMBERS: Final = _PagedField("members", MEMBERS_QUERY, GitlabNodePage[Member])


async def find_project(api: GitlabApi, name: str, since: str) -> ProjectData | Missing:
    """The project with a name, present or former, or the reason for its absence.

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
    """The number of errors in the CODEOWNERS file, which exists; or the reason for its absence."""
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

    Nothing is computed before the first is asked for, since each page asks if it was the last.
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
    """The number of members, which REST alone states: in a header, and up to a maximum."""
    answer = await api.get(f"{build_path('projects', project.number)}/members/all", per_page=1)
    total = answer.headers.get("x-total", "")
    if answer.ok and re.fullmatch(r"\d{1,9}", total, re.ASCII):
        return int(total)
    return _TOO_MANY_MEMBERS if answer.ok else answer.missing


def _lacks_merged(connection: GitlabNodePage[MergeRequest], cutoff: int, *, bots: bool) -> bool:
    """True if later rows count, too. Rows are in descending order of merge time."""
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
    settings, branches, approvals, approval_rules, push_rule = await asyncio.gather(
        api.one(project, ProjectSettings),
        api.every(f"{project}/protected_branches", list[ProtectedBranch], pages=MOST_RULE_PAGES),
        api.one(f"{project}/approvals", Approvals),
        api.every(f"{project}/approval_rules", list[ApprovalRule], pages=MOST_RULE_PAGES),
        _get_push_rule(api, project),
    )
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
    """True if the name matches the pattern, in which each star stands for any text."""
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
    """True without any rule, or if one allows it; rules inherited from a group take precedence."""
    of_groups = [one for one in fitting if one.inherited]
    return not fitting or any(one.allow_force_push for one in of_groups or fitting)


def requires_code_owners(fitting: list[ProtectedBranch]) -> bool | None:
    """True if a code owner has to approve: one rule suffices. None if GitLab does not say."""
    demands = {one.code_owner_approval_required for one in fitting}
    return True if True in demands else None if None in demands else False


def count_required_approvals(rules: list[ApprovalRule], branch: str, *, protected: bool) -> int:
    """The highest number of approvals that a rule for merges into the branch requires.

    Rules about reports apply only to the findings of a report, so they do not count.
    """
    counted = [
        rule.approvals_required
        for rule in rules
        if rule.rule_type != "report_approver"
        and _applies_to_branch(rule, branch, protected=protected)
    ]
    return max(counted, default=0)


def _applies_to_branch(rule: ApprovalRule, branch: str, *, protected: bool) -> bool:
    if rule.applies_to_all_protected_branches:
        return protected
    named = [one.name for one in rule.protected_branches]
    return not named or any(matches_branch(name, branch) for name in named)


async def _get_push_rule(api: GitlabApi, project: str) -> PushRule | Missing:
    """The push rule; one never set is null and requires nothing."""
    answer = await api.get(f"{project}/push_rule")
    if answer.ok and answer.data is None:
        return _NO_PUSH_RULE
    return answer.read_as(PushRule)


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
