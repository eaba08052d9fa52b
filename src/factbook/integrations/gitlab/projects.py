"""Reads one project through GraphQL, by its present or a former name, with the pages it needs."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from factbook.integrations import merge_times
from factbook.integrations.gitlab import queries
from factbook.integrations.gitlab.answers import (
    NO_PREMIUM,
    GitlabNodePage,
    GitlabProject,
    Member,
    MergeRequest,
    ProjectData,
    ProjectSettings,
    ValidatedRepository,
    part,
)
from factbook.integrations.gitlab.api import GitlabApi
from factbook.integrations.merge_times import MergedPull
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import build_path
from factbook.outbound.outcomes import Missing, Outcome, read_as, report_too_many

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


_MERGED: Final = _PagedField("merged", queries.MERGED, GitlabNodePage[MergeRequest])
_MEMBERS: Final = _PagedField("members", queries.MEMBERS, GitlabNodePage[Member])


async def find(api: GitlabApi, name: str, since: str) -> ProjectData | Missing:
    """The project with a name, present or former, or the reason for its absence.

    GraphQL does not know former names and returns null for hidden projects; REST redirects from
    former names.
    """
    found = await _asked(api, name, since)
    if found is not None:
        return found
    known = await api.one(build_path("projects", name), ProjectSettings)
    if isinstance(known, Missing):
        return _GONE if known.outcome is Outcome.NOT_FOUND else known
    if known.path_with_namespace == name:
        return _GONE
    return await _asked(api, known.path_with_namespace, since) or _GONE


async def complete(api: GitlabApi, found: ProjectData, cutoff: int, *, bots: bool) -> None:
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
            more = await _page(api, found, _MERGED, merged)
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
            found.members = await _member_count(api, found.project)
            if not is_noted:
                await note_exceeded_limit(api.memory, what, MOST_MEMBERS, api.now)
            return
        more = await _page(api, found, _MEMBERS, members)
        if isinstance(more, Missing):
            found.errors[_MEMBERS.name] = more
            return
        found.project.members = more


async def codeowners(api: GitlabApi, name: str) -> int | Missing:
    """The number of errors in the CODEOWNERS file, which exists; or the reason for its absence."""
    told = await api.ask(queries.CODEOWNERS, path=name)
    missing = told.failure or next(iter(told.errors.values()), None)
    if missing:
        return missing
    checked = read_as(part(told.data, "project", "repository"), ValidatedRepository)
    if isinstance(checked, Missing):
        return checked
    validation = checked.validate_codeowner_file
    return validation.total if validation else NO_PREMIUM


def merged_pulls(connection: GitlabNodePage[MergeRequest]) -> Iterator[MergedPull]:
    """The merge requests with a known time, each once: a list may shift between two pages.

    Nothing is computed before the first is asked for, since each page asks if it was the last.
    """
    known = {one.iid: one for one in connection.known}
    for one in known.values():
        if one.merged_at is not None:
            yield _merged(one, one.merged_at)


def _merged(one: MergeRequest, moment: datetime) -> MergedPull:
    merged_at = merge_times.milliseconds(moment)
    return MergedPull(
        0,
        one.title,
        one.author.username if one.author else None,
        one.author is not None and one.author.bot,
        merge_times.milliseconds(one.created_at),
        merged_at,
        merged_at,
    )


async def _asked(api: GitlabApi, name: str, since: str) -> ProjectData | Missing | None:
    """The project with this name; None if GraphQL finds none."""
    told = await api.ask(queries.PROJECT, optional=_OPTIONAL, path=name, since=since)
    if told.failure or told.data.get("project") is None:
        return told.failure or told.errors.get("")
    project = read_as(told.data["project"], GitlabProject)
    return project if isinstance(project, Missing) else ProjectData(project, told.errors)


async def _page(
    api: GitlabApi, found: ProjectData, field: _PagedField[T], before: GitlabNodePage[T]
) -> GitlabNodePage[T] | Missing:
    """The connection extended by its next page."""
    after = before.page_info.end_cursor or ""
    told = await api.ask(field.document, path=found.project.full_path, after=after)
    missing = told.failure or told.errors.get("") or told.errors.get(field.name)
    if missing:
        return missing
    more = read_as(part(told.data, "project", field.name), field.type)
    if isinstance(more, Missing):
        return more
    return GitlabNodePage([*before.nodes, *more.nodes], more.page_info, before.count)


async def _member_count(api: GitlabApi, project: GitlabProject) -> int | Missing:
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
    pulls = merged_pulls(connection)
    return not merge_times.complete(pulls, merge_times.milliseconds(last), cutoff, bots=bots)
