"""Reads repositories in batches, and further pages of a connection if the figures need more.

Batches shrink if GitHub cannot answer a whole one. Pages of many repositories share a request, and
so do queries for rulesets.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from factbook.integrations import code_host
from factbook.integrations.code_host import MergedPull
from factbook.integrations.github import api
from factbook.integrations.github import api as github_api
from factbook.integrations.github.api import (
    COLLABORATORS,
    ISSUES,
    LANGUAGES,
    PAGES,
    PULLS,
    RULES,
    Bypassed,
    Bypassing,
    GithubApi,
    GithubNodePage,
    GithubPageRequest,
    GithubPullRequest,
    GithubQueryError,
    GithubQueryResult,
    GithubRepository,
    RepositoryData,
)
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, report_too_many

REPOSITORIES_AT_ONCE: Final = 20
_LEAST: Final = 5
# A batch down to one repository in parts, and some more: then perhaps it is not the size that is
# wrong, but the host.
_MOST_FAILURES: Final = 8
_MOST_IN_A_ROW: Final = 4 * _MOST_FAILURES

_HIDDEN_REPOSITORY: Final = Missing(
    Outcome.NOT_FOUND, "no such repository, or hidden from the credential"
)
_FIELDS: Final = {
    "pulls": ("pullRequests", "openPulls", api.PULLS),
    "issues": ("openIssues", "allClosedIssues", api.ISSUES),
    "rest": (
        *("hasIssuesEnabled", "hasVulnerabilityAlertsEnabled", api.LANGUAGES),
        api.COLLABORATORS,
        *("codeowners", "openAlerts", "fixedAlerts", "dismissedAlerts", "defaultBranchRef"),
    ),
}

RepositoriesByTarget = dict[str, RepositoryData | Missing]


async def read_repositories(
    api: GithubApi, targets: Sequence[str], since: str
) -> RepositoriesByTarget:
    """Each target's repository, or the reason that it could not be read."""
    reading = _RepositoryReader(api, since)
    waiting = list(targets)
    while waiting:
        chunk, waiting = waiting[: reading.size], waiting[reading.size :]
        await reading.chunk(chunk)
    return reading.found


class _RepositoryReader:
    """State of one read; `stopped` is the reason to send no further queries."""

    def __init__(self, api: GithubApi, since: str) -> None:
        self._api = api
        self._since = since
        self._failures = 0
        self._stopped: Missing | None = None
        self.size = REPOSITORIES_AT_ONCE
        self.found: RepositoriesByTarget = {}

    async def chunk(self, targets: Sequence[str]) -> None:
        """Read these repositories together, or in smaller and smaller parts."""
        if self._stopped:
            self.found |= dict.fromkeys(targets, self._stopped)
            return
        document = api.build_batch_query(len(targets))
        told = await self._api.ask(document, api.make_batch_variables(targets, self._since))
        if told.failure:
            await self._failed(targets, told)
            return
        left_out, wiped_out = self._take(targets, told)
        if len(targets) in {len(left_out), len(wiped_out)}:
            failure = told.errors[0].missing if told.errors else UNUSABLE
            await self._failed(targets, GithubQueryResult(failure=failure, too_heavy=True))
            return
        self._failures = 0
        if len(left_out) > 1:
            await self.chunk(left_out)
        else:
            wiped_out += left_out
        for target in wiped_out:
            await self._alone(target)

    def _take(self, targets: Sequence[str], told: GithubQueryResult) -> tuple[list[str], list[str]]:
        """Keep the repositories received.

        Returns the targets left out for a limit, and those without an answer.
        """
        left_out, wiped_out = [], []
        for i, target in enumerate(targets):
            errors = [error for error in told.errors if error.path[:1] == (f"r{i}",)]
            data = told.data.get(f"r{i}")
            if any(error.too_heavy for error in errors):
                left_out.append(target)
            elif data is not None:
                self.found[target] = _make_repository_data(data, errors)
            elif refusal := _find_refusal(errors):
                self.found[target] = refusal
            elif limit := _find_rate_limit(told.errors):
                self.found[target] = self._stopped = limit
            else:
                wiped_out.append(target)
        return left_out, wiped_out

    async def _failed(self, targets: Sequence[str], told: GithubQueryResult) -> None:
        self._failures += 1
        if not told.too_heavy or await self._is_down():
            self._stopped = told.failure
            self.found |= dict.fromkeys(targets, told.failure or UNUSABLE)
        elif len(targets) > 1:
            await self._halves(targets)
        else:
            await self._alone(targets[0])

    async def _is_down(self) -> bool:
        """True if GitHub itself fails, and not only these queries; a minimal query decides.

        Sent only after several failures in a row.
        """
        if self._failures % _MOST_FAILURES:
            return False
        if self._failures >= _MOST_IN_A_ROW:
            return True
        return (await self._api.ask(api.LEAST_QUERY, {})).failure is not None

    async def _halves(self, targets: Sequence[str]) -> None:
        half = (len(targets) + 1) // 2
        self.size = min(self.size, max(_LEAST, half))
        await self.chunk(targets[:half])
        await self.chunk(targets[half:])

    async def _alone(self, target: str) -> None:
        """Read one repository in parts, so that an error costs only the part in which it occurs."""
        if self._stopped:
            self.found[target] = self._stopped
            return
        variables = api.make_batch_variables([target], self._since)
        told = await self._api.ask(api.ALONE_QUERY, variables)
        found = self.found[target] = told.failure or _join_parts(told)
        if isinstance(found, RepositoryData):
            self._failures = 0
            return
        self._failures += 1
        if (told.failure and not told.too_heavy) or await self._is_down():
            self._stopped = found


def _make_repository_data(
    data: msgspec.Raw | bytes, errors: list[GithubQueryError]
) -> RepositoryData | Missing:
    repository: GithubRepository | None = api.decode_github_answer(data, GithubRepository)
    if repository is None:
        return UNUSABLE
    found = RepositoryData(repository)
    for error in errors:
        if place := api.find_error_place(error.path[1:]):
            found.errors[place] = error.missing
    return found


def _join_parts(told: GithubQueryResult) -> RepositoryData | Missing:
    """One repository from its parts; the fields of a failed part are missing."""
    data: dict[str, msgspec.Raw] = {}
    lost: dict[str, Missing] = {}
    errors = []
    for part in api.PARTS:
        own = [error for error in told.errors if error.path[:1] == (part,)]
        if part_data := api.decode_github_answer(told.data.get(part, b""), dict[str, msgspec.Raw]):
            data |= part_data
            errors += own
        else:
            missing = own[0].missing if own else UNUSABLE
            lost |= dict.fromkeys(_FIELDS[part], missing)
    if not data:
        whole = [error for error in told.errors if len(error.path) == 1]
        return _find_refusal(whole) or next(iter(lost.values()))
    found = _make_repository_data(msgspec.json.encode(data), errors)
    if isinstance(found, RepositoryData):
        found.errors |= lost
    return found


def _find_refusal(errors: list[GithubQueryError]) -> Missing | None:
    """The reason that the repository itself is refused, if the errors mean that."""
    for error in errors:
        if len(error.path) == 1 and error.missing.outcome is Outcome.NOT_FOUND:
            return _HIDDEN_REPOSITORY
        if len(error.path) == 1 and error.missing.outcome in {Outcome.DENIED, Outcome.REFUSED}:
            return error.missing
    return None


def _find_rate_limit(errors: list[GithubQueryError]) -> Missing | None:
    limits = (error.missing for error in errors)
    return next((limit for limit in limits if limit.outcome is Outcome.RATE_LIMITED), None)


PAGES_AT_ONCE: Final = 40
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

_HIDDEN_BYPASS: Final = Missing(Outcome.DENIED, "who may bypass a ruleset is hidden")
_TOO_MANY_ACTORS: Final = report_too_many(100, "apps, teams and roles may bypass a ruleset")

Bypasses = dict[str, bool | Missing]  # by ruleset id
_Wanted = tuple[RepositoryData, GithubPageRequest]


async def complete_repositories(
    api: GithubApi, repositories: Sequence[RepositoryData], since: str, cutoff: int, *, bots: bool
) -> Bypasses:
    """Add the missing pages to the repositories, or the reasons that they cannot be read.

    Returns, for every ruleset that decides if administrators are bound, their right to bypass it.
    Some rulesets are found in the pages only.
    """
    bypassed: Bypasses = {}
    size = PAGES_AT_ONCE
    await _skip_noted_connections(
        api, [one for found in repositories for one in _list_wanted_pages(found, cutoff, bots=bots)]
    )
    for _ in range(1, MOST_PAGES):
        wanted = [
            page for found in repositories for page in _list_wanted_pages(found, cutoff, bots=bots)
        ]
        rulesets = sorted(set(_list_rulesets(repositories)) - bypassed.keys())
        if not wanted and not rulesets:
            return bypassed
        while wanted or rulesets:
            asked, wanted = wanted[:size], wanted[size:]
            ids, rulesets = rulesets[:RULESETS_AT_ONCE], rulesets[RULESETS_AT_ONCE:]
            kinds = tuple(page.kind for _, page in asked)
            variables = github_api.make_pages_variables((page for _, page in asked), ids, since)
            told = await api.ask(github_api.build_pages_query(kinds, bool(ids)), variables)
            if told.too_heavy and size > 1:
                size = (size + 1) // 2
                wanted, rulesets = asked + wanted, ids + rulesets
                continue
            _add_pages(asked, told)
            bypassed |= _read_bypasses(ids, told)
    for found in repositories:
        for _, page in list(_list_wanted_pages(found, cutoff, bots=bots)):
            found.errors[_name_place(page.kind)] = _TOO_LARGE[page.kind]
            await note_exceeded_limit(api.memory, _name_connection(page), MOST_ROWS, api.now)
    return bypassed


async def _skip_noted_connections(api: GithubApi, wanted: Sequence[_Wanted]) -> None:
    """Drop connections that an earlier run read up to the limit and found to be longer."""
    noted = await asyncio.gather(
        *(
            exceeds_noted_limit(api.memory, _name_connection(page), MOST_ROWS, api.now)
            for _, page in wanted
        )
    )
    for (found, page), is_noted in zip(wanted, noted, strict=True):
        if is_noted:
            found.errors[_name_place(page.kind)] = _TOO_LARGE[page.kind]


def _name_connection(page: GithubPageRequest) -> str:
    return f"{page.kind}:{page.node_id}"


def list_github_merged_pulls(found: RepositoryData) -> Iterator[MergedPull]:
    """The merged pull requests read so far, each once: a list may shift between two pages.

    Nothing is computed before the first is asked for, since each page asks if it was the last.
    """
    connection = found.repository.merged_pulls
    pulls = connection.known if connection else []
    yield from {pull.number: _make_github_pull(pull) for pull in pulls}.values()


def _make_github_pull(pull: GithubPullRequest) -> MergedPull:
    return MergedPull(
        pull.number,
        pull.title,
        pull.author.login if pull.author else None,
        pull.author is not None and pull.author.typename == "Bot",
        code_host.convert_to_milliseconds(pull.created_at),
        code_host.convert_to_milliseconds(pull.merged_at),
        code_host.convert_to_milliseconds(pull.updated_at),
    )


def _get_connection(found: RepositoryData, kind: str) -> GithubNodePage[Any] | None:
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


def _list_wanted_pages(found: RepositoryData, cutoff: int, *, bots: bool) -> Iterable[_Wanted]:
    for kind in PAGES:
        connection = _get_connection(found, kind)
        if connection is None or found.missing(_name_place(kind)):
            continue
        info = connection.page_info
        if info.has_next_page and info.end_cursor and _lacks_rows(found, kind, cutoff, bots=bots):
            yield found, GithubPageRequest(kind, found.repository.id, info.end_cursor)


def _lacks_rows(found: RepositoryData, kind: str, cutoff: int, *, bots: bool) -> bool:
    connection = _get_connection(found, kind)
    if connection is None or not connection.known:
        return False
    if kind == PULLS:
        last = code_host.convert_to_milliseconds(connection.known[-1].updated_at)
        return not code_host.is_population_complete(
            list_github_merged_pulls(found), last, cutoff, bots=bots
        )
    if kind == COLLABORATORS:
        return (connection.total_count or 0) <= MOST_COLLABORATORS
    return True


def _add_pages(asked: Sequence[_Wanted], told: GithubQueryResult) -> None:
    for i, (found, page) in enumerate(asked):
        more = _read_page(told, f"p{i}", page.kind)
        connection = _get_connection(found, page.kind)
        if isinstance(more, Missing):
            found.errors[_name_place(page.kind)] = more
        elif more.page_info.has_next_page and more.page_info.end_cursor == page.cursor:
            found.errors[_name_place(page.kind)] = REPEATED
        elif connection:
            connection.nodes += more.nodes
            connection.page_info = more.page_info


def _read_page(told: GithubQueryResult, alias: str, kind: str) -> GithubNodePage[Any] | Missing:
    if told.failure:
        return told.failure
    for error in told.errors:
        if error.path[:1] == (alias,) and not {"author", "repositoryRuleset"} & set(error.path):
            return error.missing
    node = github_api.decode_github_answer(told.data.get(alias, b""), PAGES[kind])
    page: GithubNodePage[Any] | None = node.page if node else None
    return page or UNUSABLE


def _name_place(kind: str) -> str:
    return "defaultBranchRef.rules" if kind == RULES else kind


def _list_rulesets(repositories: Sequence[RepositoryData]) -> Iterable[str]:
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


def _read_bypasses(ids: Sequence[str], told: GithubQueryResult) -> Bypasses:
    bypassed: Bypasses = dict.fromkeys(ids, told.failure or _HIDDEN_BYPASS)
    for node in (
        github_api.decode_github_answer(told.data.get("rulesets", b""), list[msgspec.Raw]) or ()
    ):
        ruleset: Bypassed | None = github_api.decode_github_answer(node, Bypassed)
        if ruleset and ruleset.bypass_actors:
            bypassed[ruleset.id] = _frees_administrators(ruleset.bypass_actors)
    return bypassed


def _frees_administrators(actors: GithubNodePage[Bypassing]) -> bool | Missing:
    if any(one.frees_administrators for one in actors.known):
        return True
    if len(actors.known) < len(actors.nodes):
        return _HIDDEN_BYPASS
    return _TOO_MANY_ACTORS if actors.page_info.has_next_page else False
