"""Further pages of a connection, if the figures need more than the first one.

Pages of many repositories share a request, and so do queries for rulesets.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from factbook.integrations import merge_times
from factbook.integrations.github import answers, queries
from factbook.integrations.github.answers import (
    PAGES,
    Bypassed,
    Connection,
    GithubPullRequest,
    RepositoryData,
)
from factbook.integrations.github.graphql import GithubApi, GithubQueryResult
from factbook.integrations.github.queries import (
    COLLABORATORS,
    ISSUES,
    PULLS,
    RULES,
    GithubPageRequest,
)
from factbook.integrations.merge_times import MergedPull
from factbook.outbound.outcomes import TOO_MANY, UNUSABLE, Missing, Outcome

AT_ONCE: Final = 40
RULESETS_AT_ONCE: Final = 100
MOST_COLLABORATORS: Final = 1_000
# 10,000 pull requests or issues of one month: beyond it there is no figure rather than a late one.
MOST_PAGES: Final = 100


Bypasses = dict[str, bool | Missing]  # by ruleset id
_Wanted = tuple[RepositoryData, GithubPageRequest]


async def complete(
    api: GithubApi, repositories: Sequence[RepositoryData], since: str, cutoff: int, *, bots: bool
) -> Bypasses:
    """Add the missing pages to the repositories, or the reasons that they cannot be read.

    Returns, for every ruleset that decides if administrators are bound, their right to bypass it.
    Some rulesets are found in the pages only.
    """
    rulesets = sorted(set(_rulesets(repositories)))
    bypassed: Bypasses = {}
    size = AT_ONCE
    for _ in range(MOST_PAGES):
        wanted = [page for found in repositories for page in _wanted(found, cutoff, bots=bots)]
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
        for _, page in _wanted(found, cutoff, bots=bots):
            found.errors[_place(page.kind)] = TOO_MANY
    return bypassed


def merged_pulls(found: RepositoryData) -> list[MergedPull]:
    """The merged pull requests read so far, each once: a list may shift between two pages."""
    connection = found.repository.merged_pulls
    pulls = connection.known if connection else []
    return list({pull.number: _merged(pull) for pull in pulls}.values())


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


def _connection(found: RepositoryData, kind: str) -> Connection[Any] | None:
    repository = found.repository
    by_kind: Mapping[str, Connection[Any] | None] = {
        PULLS: repository.merged_pulls,
        ISSUES: repository.closed_issues,
        COLLABORATORS: repository.collaborators,
        RULES: found.rules,
    }
    return by_kind[kind]


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
        return len(connection.nodes) < MOST_COLLABORATORS
    return True


def _add(asked: Sequence[_Wanted], told: GithubQueryResult) -> None:
    for i, (found, page) in enumerate(asked):
        more = _page(told, f"p{i}", page.kind)
        connection = _connection(found, page.kind)
        if isinstance(more, Missing):
            found.errors[_place(page.kind)] = more
        elif connection:
            connection.nodes += more.nodes
            connection.page_info = more.page_info


def _page(told: GithubQueryResult, alias: str, kind: str) -> Connection[Any] | Missing:
    if told.failure:
        return told.failure
    for error in told.errors:
        if error.path[:1] == (alias,) and not {"author", "repositoryRuleset"} & set(error.path):
            return error.missing
    node = answers.decoded(told.data.get(alias, b""), PAGES[kind])
    page: Connection[Any] | None = node.page if node else None
    return page or UNUSABLE


def _place(kind: str) -> str:
    return "defaultBranchRef.rules" if kind == RULES else kind


def _rulesets(repositories: Sequence[RepositoryData]) -> Iterable[str]:
    for found in repositories:
        branch = found.repository.default_branch_ref
        if branch is None or branch.branch_protection_rule is not None or branch.rules is None:
            continue
        for rule in branch.rules.known:
            if rule.repository_ruleset:
                yield rule.repository_ruleset.id


def _bypassed(ids: Sequence[str], told: GithubQueryResult) -> Bypasses:
    unreadable = told.failure or Missing(Outcome.DENIED, "who may bypass a ruleset is hidden")
    bypassed: Bypasses = dict.fromkeys(ids, unreadable)
    for node in answers.decoded(told.data.get("rulesets", b""), list[msgspec.Raw]) or ():
        ruleset: Bypassed | None = answers.decoded(node, Bypassed)
        if ruleset and ruleset.bypass_actors:
            bypassed[ruleset.id] = ruleset.bypass_actors.total_count > 0
    return bypassed
