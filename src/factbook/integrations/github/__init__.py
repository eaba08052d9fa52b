"""GitHub: the code-host shape, dependency alerts, and the files of a repository.

Where GraphQL gives the same empty answer for "none" and "not allowed", a REST probe distinguishes
them: at most one of each kind per repository and day. Results are valid for 24 to 36 hours.
"""

import zlib
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from factbook.clock import DAY
from factbook.integrations import code_host
from factbook.integrations.code_host import MONTH, Paths, RepositoryTree, format_timestamp
from factbook.integrations.github import facts
from factbook.integrations.github.api import (
    GITHUB,
    SLUG,
    Credentials,
    GithubApi,
    GithubOptions,
    GithubRepository,
    Oid,
    RepositoryData,
    find_github_target,
)
from factbook.integrations.github.facts import Classic, RestRule
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Collected,
    Instance,
    Integration,
    Probe,
    make_vendor,
    run_for_each,
    split_targets,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome

_SPREAD: Final = DAY // 2
_NOT_PROTECTED: Final = "Branch not protected"
_NO_ADMINISTRATION: Final = Missing(Outcome.DENIED, "the credential may not read branch protection")
_NO_ALERTS: Final = Missing(Outcome.DENIED, "the credential may not read dependency alerts")
_DISAGREE: Final = Missing(Outcome.TRANSIENT, "GitHub's two interfaces disagree")


class _StoredProbe(msgspec.Struct):
    """Result of a probe: the classic rule, or the absence of alerts; or the reason for its failure.

    `outcome` is None if the probe succeeded.
    """

    at: int
    classic: Classic | None
    outcome: Outcome | None = None
    detail: str = ""


def needs_protection_probe(found: RepositoryData) -> bool:
    """True if GraphQL may omit the classic rule for lack of permission."""
    branch = found.repository.default_branch_ref
    return (
        branch is not None
        and branch.branch_protection_rule is None
        and branch.ref_update_rule is None
        and found.repository.viewer_permission != "ADMIN"
        and not found.missing("defaultBranchRef.branchProtectionRule")
    )


def needs_alerts_probe(found: RepositoryData) -> bool:
    """True if GraphQL shows no alerts at all, as it also does without permission."""
    repository = found.repository
    counts = (repository.open_alerts, repository.fixed_alerts, repository.dismissed_alerts)
    return bool(repository.has_vulnerability_alerts_enabled) and all(
        count is not None and count.total_count == 0 for count in counts
    )


async def probe_classic_rule(
    api: GithubApi, repository: GithubRepository, branch: str
) -> Classic | Missing:
    """The classic rule of a branch, `facts.NO_RULE`, or the reason that it is unknown."""
    key = f"protection:{repository.id}:{branch}"
    kept = await _get_stored_probe(api, key)
    if kept is None:
        owner, name = repository.name_with_owner.split("/")
        target = build_path("repos", owner, name, "branches", branch, "protection")
        kept = _make_stored_probe(api.now, _judge_protection(await api.get_again(target)))
        await _store_probe(api, key, kept)
    return kept.classic or _explain_probe(kept)


async def probe_alerts(api: GithubApi, repository: GithubRepository) -> Missing | None:
    """None if there are certainly no alerts, else the reason for doubt."""
    key = f"alerts:{repository.id}"
    kept = await _get_stored_probe(api, key)
    if kept is None:
        owner, name = repository.name_with_owner.split("/")
        target = build_path("repos", owner, name, "dependabot", "alerts")
        answer = await api.get_again(target, per_page=1)
        doubt: Missing | None = None
        if not answer.ok or not isinstance(answer.data, list):
            doubt = _explain_refused_probe(answer, _NO_ALERTS)
        elif answer.data:
            doubt = _DISAGREE
        kept = _make_stored_probe(api.now, doubt)
        await _store_probe(api, key, kept)
    return _explain_probe(kept) if kept.outcome else None


def _judge_protection(answer: Answer) -> Classic | Missing:
    if answer.ok:
        rule = answer.read_as(RestRule)
        return rule if isinstance(rule, Missing) else facts.convert_rest_rule(rule)
    if answer.status == 404 and answer.message == _NOT_PROTECTED:
        return facts.NO_RULE
    return _explain_refused_probe(answer, _NO_ADMINISTRATION)


def _explain_refused_probe(answer: Answer, denied: Missing) -> Missing:
    """The reason for a refusal: "not found" means hidden here, as the repository exists."""
    if answer.ok:
        return UNUSABLE
    hidden = answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}
    return denied if hidden else answer.missing


def _make_stored_probe(now: int, found: Classic | Missing | None) -> _StoredProbe:
    if isinstance(found, Missing):
        return _StoredProbe(now, None, found.outcome, found.detail)
    return _StoredProbe(now, found)


def _explain_probe(kept: _StoredProbe) -> Missing:
    return Missing(kept.outcome, kept.detail) if kept.outcome else UNUSABLE


async def _get_stored_probe(api: GithubApi, key: str) -> _StoredProbe | None:
    stored = await api.memory.get(key)
    if stored is None:
        return None
    try:
        kept = msgspec.json.decode(stored, type=_StoredProbe)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    # Up to half a day more spreads the probes of a first run.
    validity = DAY + zlib.crc32(key.encode()) % _SPREAD
    return kept if 0 <= api.now - kept.at < validity else None


async def _store_probe(api: GithubApi, key: str, kept: _StoredProbe) -> None:
    if not (kept.outcome and _explain_probe(kept).passing):
        await api.memory.put(key, msgspec.json.encode(kept), days=2)


# Three queries for 20 repositories each, and one for the further pages of all of them.
BATCH: Final = 3 * facts.REPOSITORIES_AT_ONCE
# Calls for one tree; GitHub truncates an answer at 100,000 entries.
MOST_CALLS: Final = 200

_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_TOO_LARGE: Final = Missing(Outcome.TOO_LARGE, "the tree takes too many calls")
_EMPTY_REPOSITORY: Final = 409


async def collect_github(
    options: GithubOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """Facts about each target (`owner/name`), or the reason that they are missing."""
    api = GithubApi(client, options, memory, now)
    cutoff = now - MONTH
    since = format_timestamp(cutoff)
    bots = not options.exclude_bots
    known = await facts.read_repositories(api, targets, since)
    found = [one for one in known.values() if isinstance(one, RepositoryData)]
    bypassed = await facts.complete_repositories(api, found, since, cutoff, bots=bots)

    async def collected(target: str) -> Collected:
        one = known[target]
        if isinstance(one, Missing):
            return Collected(missing={"": one})
        return facts.make_github_facts(
            await _complete_snapshot(api, one, cutoff, bypassed, bots=bots)
        )

    return await run_for_each(known, collected)


async def read_github_file(
    options: GithubOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """Read a file of the default branch into the body; fetched again only if it changed."""
    url = f"{options.rest}{build_path('repos', *target.split('/'), 'contents', *file.split('/'))}"
    raw = {"accept": "application/vnd.github.raw+json"}
    return await client.get(
        url, headers=raw, budget="core", memory=memory, decode=False, follow=True
    )


async def _complete_snapshot(
    api: GithubApi,
    found: RepositoryData,
    cutoff: int,
    bypassed: facts.Bypasses,
    *,
    bots: bool,
) -> facts.GithubSnapshot:
    """The data of a repository, with the results of the REST probes that it needs."""
    known = facts.GithubSnapshot(
        found, await _list_default_paths(api, found), cutoff, bypassed=bypassed, bots=bots
    )
    repository = found.repository
    if needs_protection_probe(found) and repository.default_branch_ref:
        branch = repository.default_branch_ref.name
        known.classic = await probe_classic_rule(api, repository, branch)
    if needs_alerts_probe(found):
        known.no_alerts = await probe_alerts(api, repository)
    return known


class _Entry(msgspec.Struct):
    path: str
    type: str
    sha: Oid


class _Tree(msgspec.Struct):
    tree: list[_Entry]
    truncated: bool = False


async def _list_default_paths(api: GithubApi, found: RepositoryData) -> Paths | Missing:
    """The paths of all files of the default branch, unordered; none for an empty repository."""
    repository = found.repository
    branch = repository.default_branch_ref
    if branch is None or branch.target is None:
        missing = found.missing("defaultBranchRef.target")
        return missing or ([] if repository.is_empty else _HIDDEN)
    return await list_github_paths(
        api, repository.id, repository.name_with_owner, branch.target.oid
    )


async def list_github_paths(api: GithubApi, id_: str, name: str, oid: str) -> Paths | Missing:
    """The paths of all files of a repository (`owner/name`) at a commit, unordered."""
    walk = partial(_Walk(api, name).everything, oid)
    tree = RepositoryTree(id_, oid, name, walk, MOST_CALLS)
    return await code_host.read_file_tree(api.memory, tree, api.clones, api.now)


class _Walk:
    """Reader of a tree that descends into sub-trees if the whole is truncated."""

    def __init__(self, api: GithubApi, repository: str) -> None:
        self._api = api
        self._repository = repository.split("/")
        self._calls = 0

    async def everything(self, sha: str, folder: str = "") -> Paths | Missing:
        """The paths of all files in the tree, prefixed with its folder."""
        whole = await self._tree(sha, recursive=1)
        if isinstance(whole, Missing):
            return whole
        if not whole.truncated:
            return [f"{folder}{entry.path}" for entry in whole.tree if entry.type == "blob"]
        return await self._by_folder(sha, folder)

    async def _by_folder(self, sha: str, folder: str) -> Paths | Missing:
        level = await self._tree(sha)
        if isinstance(level, Missing):
            return level
        if level.truncated:
            return _TOO_LARGE
        found = [f"{folder}{entry.path}" for entry in level.tree if entry.type == "blob"]
        for entry in level.tree:
            if entry.type == "tree":
                below = await self.everything(entry.sha, f"{folder}{entry.path}/")
                if isinstance(below, Missing):
                    return below
                found += below
        return found

    async def _tree(self, sha: str, **query: int) -> _Tree | Missing:
        if self._calls == MOST_CALLS:
            return _TOO_LARGE
        self._calls += 1
        target = build_path("repos", *self._repository, "git", "trees", sha)
        answer = await self._api.get(target, form=_Tree, **query)
        if answer.status == _EMPTY_REPOSITORY:
            return _Tree([])
        if not answer.ok:
            hidden = answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}
            return _HIDDEN if hidden else answer.missing
        return answer.data if isinstance(answer.data, _Tree) else UNUSABLE


# GitHub asks clients not to run heavy queries concurrently. GraphQL queries run one after another,
# as only one batch is under way at a time. REST calls are light.
_CALLS_AT_ONCE: Final = 6
# GitHub allows 900 REST points per minute, and each of these calls costs one. Source:
# docs.github.com, "Rate limits for the REST API", about secondary rate limits.
_PACE: Final = {"core": 720}
# Costs one point, and works with any credential.
_QUESTION: Final = {"query": "{ rateLimit { remaining } }"}


def _make_github_integration(instance: Instance[GithubOptions]) -> Integration:
    options = instance.options
    own = () if options.host == GITHUB else (options.slug,)
    credentials = Credentials(instance.id, options, instance.clock)
    return Integration(
        source=instance.source(
            f"Pull requests, issues, protection, alerts and files on {options.host}.",
            (SLUG, SOURCE_LOCATION, *own),
            # Limits reset every hour, and the run resumes then.
            minutes=120,
        ),
        authorize=credentials.interface,
        base_url=options.origin,
        further={options.git: credentials.git},
        calls_at_once=_CALLS_AT_ONCE,
        pace=_PACE,
        target=partial(find_github_target, options),
        batches=partial(split_targets, size=BATCH),
        collect=partial(collect_github, options),
        read=partial(read_github_file, options),
        probes=(Probe(right="a valid credential", target=options.graphql, json=_QUESTION),),
    )


INTEGRATION: Final = make_vendor(
    "github",
    "GitHub",
    GithubOptions,
    _make_github_integration,
    (
        "codehost",
        "security.dependencyAlerts",
        "security.branchProtection",
        "repository",
    ),
)
