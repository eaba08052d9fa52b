"""Reads GitHub repositories in batches, and makes their facts.

Batches shrink if GitHub cannot answer a whole one. Pages of many repositories share a request, and
so do queries for rulesets. Branch protection merges the classic rule with the rules of rulesets;
the strictest wins.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from factbook.integrations import code_host
from factbook.integrations.code_host import MergedPull
from factbook.integrations.github import api as github_api
from factbook.integrations.github.api import (
    COLLABORATORS,
    ISSUES,
    LANGUAGES,
    PAGES,
    PULLS,
    RULES,
    BranchRule,
    Bypassed,
    GithubApi,
    GithubBranch,
    GithubNodePage,
    GithubPageRequest,
    GithubPullRequest,
    GithubQueryError,
    GithubQueryResult,
    GithubRepository,
    Parameters,
    RepositoryData,
    RuleNode,
    UpdateRule,
)
from factbook.integrations.integration import Collected, Leaves
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, report_too_many

REPOSITORIES_AT_ONCE: Final = 20
_LEAST: Final = 5
# Enough failures to split a batch down to parts of one repository. Beyond them, the cause may be
# the host rather than the size of the query.
_MOST_FAILURES: Final = 8
_MOST_IN_A_ROW: Final = 4 * _MOST_FAILURES

_HIDDEN_REPOSITORY: Final = Missing(
    Outcome.NOT_FOUND, "no such repository, or hidden from the credential"
)
_FIELDS: Final = {
    "pulls": ("pullRequests", "openPulls", github_api.PULLS),
    "issues": ("openIssues", "allClosedIssues", github_api.ISSUES),
    "rest": (
        *("hasIssuesEnabled", "hasVulnerabilityAlertsEnabled", github_api.LANGUAGES),
        github_api.COLLABORATORS,
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
    """State of one read; `_stopped` is the reason to send no further queries."""

    def __init__(self, api: GithubApi, since: str) -> None:
        self._api = api
        self._since = since
        self._failures = 0
        self._stopped: Missing | None = None
        self.size = REPOSITORIES_AT_ONCE
        self.found: RepositoriesByTarget = {}

    async def chunk(self, targets: Sequence[str]) -> None:
        """Read these repositories in one query, or in ever smaller parts if it fails."""
        if self._stopped:
            self.found |= dict.fromkeys(targets, self._stopped)
            return
        document = github_api.build_batch_query(len(targets))
        told = await self._api.ask(document, github_api.make_batch_variables(targets, self._since))
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
        """Store the repositories of an answer.

        Returns the targets that exceeded a resource limit, and those without data.
        """
        left_out, wiped_out = [], []
        limits = [
            error.missing for error in told.errors if error.missing.outcome is Outcome.RATE_LIMITED
        ]
        for i, target in enumerate(targets):
            errors = [error for error in told.errors if error.path[:1] == (f"r{i}",)]
            data = told.data.get(f"r{i}")
            if any(error.too_heavy for error in errors):
                left_out.append(target)
            elif data is not None:
                self.found[target] = _make_repository_data(data, errors)
            elif refusal := _find_refusal(errors):
                self.found[target] = refusal
            elif limits:
                self.found[target] = self._stopped = limits[0]
            else:
                wiped_out.append(target)
        return left_out, wiped_out

    async def _failed(self, targets: Sequence[str], told: GithubQueryResult) -> None:
        self._failures += 1
        if not told.too_heavy or await self._is_down():
            self._stopped = told.failure
            self.found |= dict.fromkeys(targets, told.failure or UNUSABLE)
        elif len(targets) > 1:
            half = (len(targets) + 1) // 2
            self.size = min(self.size, max(_LEAST, half))
            await self.chunk(targets[:half])
            await self.chunk(targets[half:])
        else:
            await self._alone(targets[0])

    async def _is_down(self) -> bool:
        """True if GitHub itself fails, and not only these queries.

        A minimal query decides, sent only after every `_MOST_FAILURES` failures in a row.
        """
        if self._failures % _MOST_FAILURES:
            return False
        if self._failures >= _MOST_IN_A_ROW:
            return True
        return (await self._api.ask(github_api.LEAST_QUERY, {})).failure is not None

    async def _alone(self, target: str) -> None:
        """Read one repository in parts, so an error costs only the part where it occurs."""
        if self._stopped:
            self.found[target] = self._stopped
            return
        variables = github_api.make_batch_variables([target], self._since)
        told = await self._api.ask(github_api.ALONE_QUERY, variables)
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
    repository: GithubRepository | None = github_api.decode_github_answer(data, GithubRepository)
    if repository is None:
        return UNUSABLE
    found = RepositoryData(repository)
    for error in errors:
        if place := github_api.find_error_place(error.path[1:]):
            found.errors[place] = error.missing
    return found


def _join_parts(told: GithubQueryResult) -> RepositoryData | Missing:
    """One repository from its parts; the fields of a failed part are missing."""
    data: dict[str, msgspec.Raw] = {}
    lost: dict[str, Missing] = {}
    errors = []
    for part in github_api.PARTS:
        own = [error for error in told.errors if error.path[:1] == (part,)]
        if part_data := github_api.decode_github_answer(
            told.data.get(part, b""), dict[str, msgspec.Raw]
        ):
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
    """The reason if the errors refuse the whole repository."""
    for error in errors:
        if len(error.path) == 1 and error.missing.outcome is Outcome.NOT_FOUND:
            return _HIDDEN_REPOSITORY
        if len(error.path) == 1 and error.missing.outcome in {Outcome.DENIED, Outcome.REFUSED}:
            return error.missing
    return None


PAGES_AT_ONCE: Final = 40
RULESETS_AT_ONCE: Final = 100
MOST_COLLABORATORS: Final = 1_000
# 10,000 pull requests or issues per month; beyond that, a figure would take too long.
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

    Returns, for every ruleset that decides whether administrators are bound, if they may bypass it.
    Some rulesets appear only in the added pages.
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
    """Skip connections that exceeded the limit in a recent run."""
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
    """The merged pull requests so far, each once: a list may shift between two pages.

    A generator, as most pages don't need the result (`is_population_complete`).
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
        if not ruleset or not ruleset.bypass_actors:
            continue
        actors = ruleset.bypass_actors
        if any(actor.frees_administrators for actor in actors.known):
            bypassed[ruleset.id] = True
        elif len(actors.known) < len(actors.nodes):
            bypassed[ruleset.id] = _HIDDEN_BYPASS
        else:
            bypassed[ruleset.id] = _TOO_MANY_ACTORS if actors.page_info.has_next_page else False
    return bypassed


class Switch(msgspec.Struct, frozen=True):
    """On-off setting of REST."""

    enabled: bool = False


class RestReviews(msgspec.Struct):
    """Required reviews of a rule, in REST."""

    dismiss_stale_reviews: bool = False
    require_code_owner_reviews: bool = False
    require_last_push_approval: bool = False
    required_approving_review_count: int = 0


class RestChecks(msgspec.Struct):
    """Required status checks of a rule, in REST."""

    strict: bool = False


class RestRule(msgspec.Struct):
    """Classic rule of a branch, in REST; a requirement that is not set is absent."""

    enforce_admins: Switch = Switch()
    allow_deletions: Switch = Switch()
    required_linear_history: Switch = Switch()
    allow_force_pushes: Switch = Switch()
    block_creations: Switch = Switch()
    required_signatures: Switch = Switch()
    required_pull_request_reviews: RestReviews | None = None
    required_status_checks: RestChecks | None = None


@dataclass(frozen=True)
class Classic:
    """Classic rule that matches the branch; unreadable values are None."""

    exists: bool | None = None
    enforces_admins: bool | None = None
    allows_deletions: bool | None = None
    requires_linear_history: bool | None = None
    allows_force_pushes: bool | None = None
    blocks_creations: bool | None = None
    requires_signatures: bool | None = None
    dismisses_stale_reviews: bool | None = None
    requires_code_owner_reviews: bool | None = None
    requires_last_push_approval: bool | None = None
    requires_strict_checks: bool | None = None
    approving_reviews: int | None = None


UNREADABLE = Classic()
NO_RULE = Classic(
    **{field.name: False for field in fields(Classic) if field.name != "approving_reviews"}
    | {"allows_deletions": True, "allows_force_pushes": True},
    approving_reviews=0,
)


class Merged(NamedTuple):
    """Leaves of branchProtection and codeReview; unknown values are None."""

    protection: dict[str, bool | None]
    review: dict[str, bool | int | None]


def merge_protection(
    classic: Classic, rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> Merged:
    """Merge the classic rule and the rules of rulesets.

    `rules` is None if they are unreadable. `bypassed` maps ruleset ids to true if administrators
    may bypass the ruleset; None or no entry means that this is unreadable.
    """
    types = None if rules is None else {rule.type for rule in rules}
    reviews = _list_parameters(rules, "PULL_REQUEST")
    checks = _list_parameters(rules, "REQUIRED_STATUS_CHECKS")
    strict = _any_demands(
        checks,
        lambda one: one.strict_required_status_checks_policy and bool(one.required_status_checks),
    )
    approvals: int | None = None
    if classic.approving_reviews is not None and reviews is not None:
        required = (review.required_approving_review_count for review in reviews)
        approvals = max([classic.approving_reviews, *required])
    return Merged(
        {
            "enabled": _either_true(classic.exists, None if types is None else bool(types)),
            "enforceAdmins": _either_true(
                classic.enforces_admins, _are_bound_by_rulesets(rules, bypassed)
            ),
            "allowDeletions": _both_true(
                classic.allows_deletions, _lacks_rule_type(types, "DELETION")
            ),
            "requiredLinearHistory": _either_true(
                classic.requires_linear_history, _has_rule_type(types, "REQUIRED_LINEAR_HISTORY")
            ),
            "allowForcePushes": _both_true(
                classic.allows_force_pushes, _lacks_rule_type(types, "NON_FAST_FORWARD")
            ),
            "blockCreations": _either_true(
                classic.blocks_creations, _has_rule_type(types, "CREATION")
            ),
            "requiredSignatures": _either_true(
                classic.requires_signatures, _has_rule_type(types, "REQUIRED_SIGNATURES")
            ),
        },
        {
            "dismissStaleReviews": _either_true(
                classic.dismisses_stale_reviews,
                _any_demands(reviews, lambda one: one.dismiss_stale_reviews_on_push),
            ),
            "requireCodeOwnerReviews": _either_true(
                classic.requires_code_owner_reviews,
                _any_demands(reviews, lambda one: one.require_code_owner_review),
            ),
            "requireLastPushApproval": _either_true(
                classic.requires_last_push_approval,
                _any_demands(reviews, lambda one: one.require_last_push_approval),
            ),
            "strictRequiredStatusChecks": _either_true(classic.requires_strict_checks, strict),
            "requiredApprovingReviewCount": approvals,
        },
    )


def convert_graphql_rule(rule: BranchRule) -> Classic:
    """The classic rule as administrators see it."""
    return Classic(
        exists=True,
        enforces_admins=rule.is_admin_enforced,
        allows_deletions=rule.allows_deletions,
        requires_linear_history=rule.requires_linear_history,
        allows_force_pushes=rule.allows_force_pushes,
        blocks_creations=rule.blocks_creations,
        requires_signatures=rule.requires_commit_signatures,
        dismisses_stale_reviews=rule.dismisses_stale_reviews,
        requires_code_owner_reviews=rule.requires_code_owner_reviews,
        requires_last_push_approval=rule.require_last_push_approval,
        # GitHub reports strict checks as true even if no checks are required.
        requires_strict_checks=rule.requires_status_checks and rule.requires_strict_status_checks,
        approving_reviews=rule.required_approving_review_count or 0,
    )


def convert_update_rule(rule: UpdateRule) -> Classic:
    """The classic rule from the view that every reader has."""
    return Classic(
        exists=True,
        allows_deletions=rule.allows_deletions,
        requires_linear_history=rule.requires_linear_history,
        allows_force_pushes=rule.allows_force_pushes,
        blocks_creations=rule.blocks_creations,
        requires_signatures=rule.requires_signatures,
        requires_code_owner_reviews=rule.requires_code_owner_reviews,
        approving_reviews=rule.required_approving_review_count or 0,
    )


def convert_rest_rule(rule: RestRule) -> Classic:
    """The classic rule as REST returns it."""
    reviews = rule.required_pull_request_reviews or RestReviews()
    return Classic(
        exists=True,
        enforces_admins=rule.enforce_admins.enabled,
        allows_deletions=rule.allow_deletions.enabled,
        requires_linear_history=rule.required_linear_history.enabled,
        allows_force_pushes=rule.allow_force_pushes.enabled,
        blocks_creations=rule.block_creations.enabled,
        requires_signatures=rule.required_signatures.enabled,
        dismisses_stale_reviews=reviews.dismiss_stale_reviews,
        requires_code_owner_reviews=reviews.require_code_owner_reviews,
        requires_last_push_approval=reviews.require_last_push_approval,
        requires_strict_checks=(rule.required_status_checks or RestChecks()).strict,
        approving_reviews=reviews.required_approving_review_count,
    )


def _are_bound_by_rulesets(
    rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> bool | None:
    if rules is None:
        return None
    rulesets = [rule.repository_ruleset for rule in rules]
    may_bypass = [bypassed.get(ruleset.id) if ruleset else None for ruleset in rulesets]
    if any(may_bypass):
        return False
    return None if None in may_bypass else bool(rules)


def _list_parameters(rules: Sequence[RuleNode] | None, type_: str) -> list[Parameters] | None:
    if rules is None:
        return None
    return [rule.parameters for rule in rules if rule.type == type_ and rule.parameters]


def _any_demands(
    parameters: Iterable[Parameters] | None, demands: Callable[[Parameters], bool]
) -> bool | None:
    return None if parameters is None else any(demands(one) for one in parameters)


def _has_rule_type(types: set[str] | None, type_: str) -> bool | None:
    return None if types is None else type_ in types


def _lacks_rule_type(types: set[str] | None, type_: str) -> bool | None:
    return None if types is None else type_ not in types


def _either_true(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if None in {one, other} else False


def _both_true(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if None in {one, other} else True


CODEOWNERS: Final = frozenset({".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"})

_NO_ACCESS: Final = Missing(Outcome.DENIED, "collaborators need push access")
_TOO_MANY_COLLABORATORS: Final = report_too_many(MOST_COLLABORATORS, "collaborators to list")
_NO_ALERTS: Final = Missing(Outcome.DENIED, "the credential may not read dependency alerts")
_NO_CONTENTS: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_NO_RULES: Final = Missing(Outcome.DENIED, "the credential may not read all rules of the branch")
_NO_BRANCH: Final = Missing(Outcome.NOT_APPLICABLE, "the repository is empty")
_ISSUES_OFF: Final = Missing(Outcome.FEATURE_OFF, "issues are switched off")
_ALERTS_OFF: Final = Missing(Outcome.FEATURE_OFF, "dependency alerts are switched off")
_HIDDEN: Final = Missing(Outcome.DENIED, "hidden from the credential")
# For instance because of its size.
_NOT_CHECKED: Final = Missing(Outcome.INCOMPLETE, "GitHub does not check the CODEOWNERS file")


@dataclass
class GithubSnapshot:
    """Data collected about one repository.

    `classic` is the result of the REST probe for the classic rule, None without a probe.
    `no_alerts` is the reason to doubt that there are no alerts, None without doubt. `cutoff` is 30
    days ago.
    """

    found: RepositoryData
    paths: list[str] | Missing
    cutoff: int
    classic: Classic | Missing | None = None
    no_alerts: Missing | None = None
    bypassed: Bypasses = field(default_factory=dict)
    bots: bool = True

    @cached_property
    def merging(self) -> Leaves | Missing:
        """The facts of the merged pull requests, by group."""
        if self.found.repository.merged_pulls is None or self.found.missing(PULLS):
            return self.found.missing(PULLS) or UNUSABLE
        return code_host.make_merge_figures(
            list_github_merged_pulls(self.found), self.cutoff, bots=self.bots
        )

    @cached_property
    def protection(self) -> tuple[Leaves, Leaves] | Missing:
        """The leaves of branchProtection, and those of codeReview that rules decide."""
        return _make_github_protection(self)


def make_github_facts(known: GithubSnapshot) -> Collected:
    """The facts of all shapes that GitHub fills."""
    merged = known.protection
    found = code_host.make_code_host_groups(
        merging=known.merging,
        pull_requests=_make_github_pull_requests(known),
        issues=_make_github_issues(known),
        collaboration=_make_github_collaboration(known),
        protection=merged if isinstance(merged, Missing) else merged[0],
        review=_make_github_code_review(known),
        paths=known.paths,
    )
    return Collected.of({**found, "security.dependencyAlerts": _make_dependency_alerts(known)})


def _make_github_pull_requests(known: GithubSnapshot) -> Leaves | Missing:
    repository = known.found.repository
    return code_host.make_pull_request_leaves(
        _count_connection(known, repository.pull_requests, "pullRequests"),
        _count_connection(known, repository.merged_pulls, PULLS),
        _count_connection(known, repository.open_pulls, "openPulls"),
        known.merging,
    )


def _make_github_issues(known: GithubSnapshot) -> Leaves | Missing:
    repository = known.found.repository
    if repository.has_issues_enabled is False:
        return _ISSUES_OFF
    return code_host.make_issue_leaves(
        _count_connection(known, repository.open_issues, "openIssues"),
        _count_connection(known, repository.all_closed_issues, "allClosedIssues"),
        _count_closed_issues(known),
    )


def _count_closed_issues(known: GithubSnapshot) -> int | Missing:
    connection = known.found.repository.closed_issues
    if connection is None or known.found.missing(ISSUES):
        return known.found.missing(ISSUES) or UNUSABLE
    return len(
        {
            issue.number
            for issue in connection.known
            if code_host.convert_to_milliseconds(issue.closed_at) >= known.cutoff
        }
    )


def _make_github_collaboration(known: GithubSnapshot) -> Leaves:
    repository = known.found.repository
    languages: Any = known.found.missing(LANGUAGES)
    if languages is None:
        listed = repository.languages
        is_told = listed is not None and listed.nodes is not None
        languages = [one.name for one in listed.known] if listed and is_told else UNUSABLE
    return {"languages": languages, **_make_github_collaborators(known)}


def _make_github_collaborators(known: GithubSnapshot) -> Leaves:
    connection = known.found.repository.collaborators
    missing = known.found.missing(COLLABORATORS)
    if connection is None or connection.total_count is None:
        return code_host.make_collaborator_leaves(missing or _NO_ACCESS, missing or _NO_ACCESS)
    logins: Any = sorted({user.login for user in connection.known})
    if connection.total_count > MOST_COLLABORATORS:
        logins = _TOO_MANY_COLLABORATORS
    return code_host.make_collaborator_leaves(missing or logins, connection.total_count)


def _make_github_code_review(known: GithubSnapshot) -> Leaves:
    merged = known.protection
    review: Leaves
    if isinstance(merged, Missing):
        review = dict.fromkeys(merge_protection(NO_RULE, [], {}).review, merged)
    else:
        review = merged[1]
    return {**review, **_make_github_codeowners(known)}


def _make_github_protection(known: GithubSnapshot) -> tuple[Leaves, Leaves] | Missing:
    found = known.found
    branch = found.repository.default_branch_ref
    if branch is None:
        missing = found.missing("defaultBranchRef")
        return missing or (_NO_BRANCH if found.repository.is_empty else _NO_CONTENTS)
    classic = _find_classic_rule(known, branch)
    rules = None
    if branch.rules is not None and not found.missing("defaultBranchRef.rules"):
        rules = branch.rules.known
    bypassed = {
        id_: known.bypassed.get(id_)
        for id_ in (rule.repository_ruleset.id for rule in rules or () if rule.repository_ruleset)
    }
    readable = {id_: may for id_, may in bypassed.items() if isinstance(may, bool)}
    merged = merge_protection(
        UNREADABLE if isinstance(classic, Missing) else classic, rules, readable
    )
    if isinstance(classic, Missing):
        why = classic
    else:
        why = known.found.missing("defaultBranchRef.rules") or _NO_RULES
    hidden = next((may for may in bypassed.values() if isinstance(may, Missing)), None)
    leaves = _fill_unknown(merged.protection, why), _fill_unknown(merged.review, why)
    if merged.protection["enforceAdmins"] is None and not isinstance(classic, Missing):
        leaves[0]["enforceAdmins"] = hidden or why
    return leaves


def _find_classic_rule(known: GithubSnapshot, branch: GithubBranch) -> Classic | Missing:
    """The classic rule from its most complete view; `NO_RULE` only if that is certain."""
    if branch.branch_protection_rule is not None:
        return convert_graphql_rule(branch.branch_protection_rule)
    if missing := known.found.missing("defaultBranchRef.branchProtectionRule"):
        return missing
    if branch.ref_update_rule is not None:
        return convert_update_rule(branch.ref_update_rule)
    if known.found.repository.viewer_permission == "ADMIN":
        return NO_RULE
    return known.classic or _NO_RULES


def _fill_unknown(leaves: Mapping[str, Any], why: Missing) -> Leaves:
    return {name: why if value is None else value for name, value in leaves.items()}


def _make_github_codeowners(known: GithubSnapshot) -> Leaves:
    missing = known.found.missing("codeowners")
    owners = known.found.repository.codeowners
    if owners is not None and not missing:
        return code_host.make_codeowners_leaves(CODEOWNERS, CODEOWNERS, len(owners.errors))
    # GitHub also reports no file if the credential may not read the contents.
    return code_host.make_codeowners_leaves(missing or known.paths, CODEOWNERS, _NOT_CHECKED)


def _make_dependency_alerts(known: GithubSnapshot) -> Leaves | Missing:
    found = known.found
    repository = found.repository
    if missing := found.missing("openAlerts", "fixedAlerts", "dismissedAlerts"):
        return missing
    if repository.has_vulnerability_alerts_enabled is False:
        return _ALERTS_OFF
    if known.no_alerts:
        return known.no_alerts
    counts = {
        "open": repository.open_alerts,
        "dismissed": repository.dismissed_alerts,
        "fixed": repository.fixed_alerts,
    }
    read = {name: count.total_count for name, count in counts.items() if count}
    return read if len(read) == len(counts) else _NO_ALERTS


def _count_connection(known: GithubSnapshot, connection: Any, place: str) -> int | Missing:
    if connection is None or connection.total_count is None:
        return known.found.missing(place) or _HIDDEN
    return int(connection.total_count)
