"""Further pages of a connection, if the figures need more than the first one.

Pages of many repositories share a request, and so do queries for rulesets.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from factbook.integrations import merge_times
from factbook.integrations.github import answers, queries
from factbook.integrations.github.answers import (
    PAGES,
    Bypassed,
    Bypassing,
    GithubNodePage,
    GithubPullRequest,
    RepositoryData,
)
from factbook.integrations.github.graphql import GithubApi, GithubQueryResult
from factbook.integrations.github.queries import (
    COLLABORATORS,
    ISSUES,
    LANGUAGES,
    PULLS,
    RULES,
    GithubPageRequest,
)
from factbook.integrations.merge_times import MergedPull
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, report_too_many

AT_ONCE: Final = 40
RULESETS_AT_ONCE: Final = 100
MOST_COLLABORATORS: Final = 1_000
# 10,000 pull requests or issues of one month: beyond it there is no figure rather than a late one.
MOST_PAGES: Final = 100
MOST_ROWS: Final = 100 * MOST_PAGES
_TOO_LARGE: Final = {
    PULLS: report_too_many(MOST_ROWS, "merged pull requests to read for 30 days"),
    ISSUES: report_too_many(MOST_ROWS, "closed issues to read for 30 days"),
    COLLABORATORS: report_too_many(MOST_ROWS, "collaborators"),
    RULES: report_too_many(MOST_ROWS, "rules of the branch"),
    LANGUAGES: report_too_many(MOST_ROWS, "languages"),
}

_HIDDEN: Final = Missing(Outcome.DENIED, "who may bypass a ruleset is hidden")
_TOO_MANY_ACTORS: Final = report_too_many(100, "apps, teams and roles may bypass a ruleset")

Bypasses = dict[str, bool | Missing]  # by ruleset id
_Wanted = tuple[RepositoryData, GithubPageRequest]


async def complete(
    api: GithubApi, repositories: Sequence[RepositoryData], since: str, cutoff: int, *, bots: bool
) -> Bypasses:
    """Add the missing pages to the repositories, or the reasons that they cannot be read.

    Returns, for every ruleset that decides if administrators are bound, their right to bypass it.
    Some rulesets are found in the pages only.
    """
    bypassed: Bypasses = {}
    size = AT_ONCE
    await _recall(api, [one for found in repositories for one in _wanted(found, cutoff, bots=bots)])
    for _ in range(1, MOST_PAGES):
        wanted = [page for found in repositories for page in _wanted(found, cutoff, bots=bots)]
        rulesets = sorted(set(_rulesets(repositories)) - bypassed.keys())
        if not wanted and not rulesets:
            return bypassed
        while wanted or rulesets:
            asked, wanted = wanted[:size], wanted[size:]
            ids, rulesets = rulesets[:RULESETS_AT_ONCE], rulesets[RULESETS_AT_ONCE:]
            kinds = tuple(page.kind for _, page in asked)
            variables = queries.pages_variables((page for _, page in asked), ids, since)
            told = await api.ask(queries.pages(kinds, bool(ids)), variables)
            if told.too_heavy and size > 1:
                size = (size + 1) // 2
                wanted, rulesets = asked + wanted, ids + rulesets
                continue
            _add(asked, told)
            bypassed |= _bypassed(ids, told)
    for found in repositories:
        for _, page in list(_wanted(found, cutoff, bots=bots)):
            found.errors[_place(page.kind)] = _TOO_LARGE[page.kind]
            await note_exceeded_limit(api.memory, _what(page), MOST_ROWS, api.now)
    return bypassed


async def _recall(api: GithubApi, wanted: Sequence[_Wanted]) -> None:
    """Drop connections that an earlier run read up to the limit and found to be longer."""
    noted = await asyncio.gather(
        *(exceeds_noted_limit(api.memory, _what(page), MOST_ROWS, api.now) for _, page in wanted)
    )
    for (found, page), is_noted in zip(wanted, noted, strict=True):
        if is_noted:
            found.errors[_place(page.kind)] = _TOO_LARGE[page.kind]


def _what(page: GithubPageRequest) -> str:
    return f"{page.kind}:{page.node_id}"


def merged_pulls(found: RepositoryData) -> Iterator[MergedPull]:
    """The merged pull requests read so far, each once: a list may shift between two pages.

    Nothing is computed before the first is asked for, since each page asks if it was the last.
    """
    connection = found.repository.merged_pulls
    pulls = connection.known if connection else []
    yield from {pull.number: _merged(pull) for pull in pulls}.values()


def _merged(pull: GithubPullRequest) -> MergedPull:
    return MergedPull(
        pull.number,
        pull.title,
        pull.author.login if pull.author else None,
        pull.author is not None and pull.author.typename == "Bot",
        merge_times.milliseconds(pull.created_at),
        merge_times.milliseconds(pull.merged_at),
        merge_times.milliseconds(pull.updated_at),
    )


def _connection(found: RepositoryData, kind: str) -> GithubNodePage[Any] | None:
    repository = found.repository
    by_kind: Mapping[str, Any] = {
        PULLS: repository.merged_pulls,
        ISSUES: repository.closed_issues,
        COLLABORATORS: repository.collaborators,
        RULES: found.rules,
        LANGUAGES: repository.languages,
    }
    connection: GithubNodePage[Any] | None = by_kind[kind]
    return connection


def _wanted(found: RepositoryData, cutoff: int, *, bots: bool) -> Iterable[_Wanted]:
    for kind in PAGES:
        connection = _connection(found, kind)
        if connection is None or found.missing(_place(kind)):
            continue
        info = connection.page_info
        if info.has_next_page and info.end_cursor and _lacks(found, kind, cutoff, bots=bots):
            yield found, GithubPageRequest(kind, found.repository.id, info.end_cursor)


def _lacks(found: RepositoryData, kind: str, cutoff: int, *, bots: bool) -> bool:
    connection = _connection(found, kind)
    if connection is None or not connection.known:
        return False
    if kind == PULLS:
        last = merge_times.milliseconds(connection.known[-1].updated_at)
        return not merge_times.complete(merged_pulls(found), last, cutoff, bots=bots)
    if kind == COLLABORATORS:
        return (connection.total_count or 0) <= MOST_COLLABORATORS
    return True


def _add(asked: Sequence[_Wanted], told: GithubQueryResult) -> None:
    for i, (found, page) in enumerate(asked):
        more = _page(told, f"p{i}", page.kind)
        connection = _connection(found, page.kind)
        if isinstance(more, Missing):
            found.errors[_place(page.kind)] = more
        elif more.page_info.has_next_page and more.page_info.end_cursor == page.cursor:
            found.errors[_place(page.kind)] = REPEATED
        elif connection:
            connection.nodes += more.nodes
            connection.page_info = more.page_info


def _page(told: GithubQueryResult, alias: str, kind: str) -> GithubNodePage[Any] | Missing:
    if told.failure:
        return told.failure
    for error in told.errors:
        if error.path[:1] == (alias,) and not {"author", "repositoryRuleset"} & set(error.path):
            return error.missing
    node = answers.decoded(told.data.get(alias, b""), PAGES[kind])
    page: GithubNodePage[Any] | None = node.page if node else None
    return page or UNUSABLE


def _place(kind: str) -> str:
    return "defaultBranchRef.rules" if kind == RULES else kind


def _rulesets(repositories: Sequence[RepositoryData]) -> Iterable[str]:
    for found in repositories:
        branch = found.repository.default_branch_ref
        if branch is None or branch.rules is None:
            continue
        classic = branch.branch_protection_rule
        if classic is not None and classic.is_admin_enforced:
            continue
        for rule in branch.rules.known:
            if rule.repository_ruleset:
                yield rule.repository_ruleset.id


def _bypassed(ids: Sequence[str], told: GithubQueryResult) -> Bypasses:
    bypassed: Bypasses = dict.fromkeys(ids, told.failure or _HIDDEN)
    for node in answers.decoded(told.data.get("rulesets", b""), list[msgspec.Raw]) or ():
        ruleset: Bypassed | None = answers.decoded(node, Bypassed)
        if ruleset and ruleset.bypass_actors:
            bypassed[ruleset.id] = _frees_administrators(ruleset.bypass_actors)
    return bypassed


def _frees_administrators(actors: GithubNodePage[Bypassing]) -> bool | Missing:
    if any(one.frees_administrators for one in actors.known):
        return True
    if len(actors.known) < len(actors.nodes):
        return _HIDDEN
    return _TOO_MANY_ACTORS if actors.page_info.has_next_page else False
