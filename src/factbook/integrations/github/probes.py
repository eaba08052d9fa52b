"""REST requests that tell "none" from "not allowed" where GraphQL's answer is empty for both.

At most one of each kind for a repository and day. They are repeated after a day or slightly more.
"""

import zlib
from typing import Final

import msgspec

from factbook.clock import DAY
from factbook.integrations.github import protection
from factbook.integrations.github.answers import GithubRepository, RepositoryData
from factbook.integrations.github.graphql import GithubApi
from factbook.integrations.github.protection import Classic, RestRule
from factbook.outbound.client import build_path
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


def needs_protection(found: RepositoryData) -> bool:
    """True if the classic rule may be missing in GraphQL for lack of permission."""
    branch = found.repository.default_branch_ref
    return (
        branch is not None
        and branch.branch_protection_rule is None
        and branch.ref_update_rule is None
        and found.repository.viewer_permission != "ADMIN"
        and not found.missing("defaultBranchRef.branchProtectionRule")
    )


def needs_alerts(found: RepositoryData) -> bool:
    """True if there are no alerts at all, as a reader without permission sees it, too."""
    repository = found.repository
    counts = (repository.open_alerts, repository.fixed_alerts, repository.dismissed_alerts)
    return bool(repository.has_vulnerability_alerts_enabled) and all(
        count is not None and count.total_count == 0 for count in counts
    )


async def classic_rule(
    api: GithubApi, repository: GithubRepository, branch: str
) -> Classic | Missing:
    """The classic rule of a branch, `protection.NO_RULE`, or the reason that it is unknown."""
    key = f"protection:{repository.id}:{branch}"
    kept = await _kept(api, key)
    if kept is None:
        owner, name = repository.name_with_owner.split("/")
        target = build_path("repos", owner, name, "branches", branch, "protection")
        kept = _keep(api.now, _protection_in(await api.get_again(target)))
        await _put(api, key, kept)
    return kept.classic or _why(kept)


async def no_alerts(api: GithubApi, repository: GithubRepository) -> Missing | None:
    """None if there are certainly no alerts, else the reason for doubt."""
    key = f"alerts:{repository.id}"
    kept = await _kept(api, key)
    if kept is None:
        owner, name = repository.name_with_owner.split("/")
        target = build_path("repos", owner, name, "dependabot", "alerts")
        kept = _keep(api.now, _alerts_in(await api.get_again(target, per_page=1)))
        await _put(api, key, kept)
    return _why(kept) if kept.outcome else None


def _protection_in(answer: Answer) -> Classic | Missing:
    if answer.ok:
        rule = answer.read_as(RestRule)
        return rule if isinstance(rule, Missing) else protection.from_rest(rule)
    if answer.status == 404 and answer.message == _NOT_PROTECTED:
        return protection.NO_RULE
    return _refused(answer, _NO_ADMINISTRATION)


def _alerts_in(answer: Answer) -> Missing | None:
    if answer.ok and isinstance(answer.data, list):
        return _DISAGREE if answer.data else None
    return _refused(answer, _NO_ALERTS)


def _refused(answer: Answer, denied: Missing) -> Missing:
    """The reason for a refusal: "not found" means hidden here, as the repository exists."""
    if answer.ok:
        return UNUSABLE
    hidden = answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}
    return denied if hidden else answer.missing


def _keep(now: int, found: Classic | Missing | None) -> _StoredProbe:
    if isinstance(found, Missing):
        return _StoredProbe(now, None, found.outcome, found.detail)
    return _StoredProbe(now, found)


def _why(kept: _StoredProbe) -> Missing:
    return Missing(kept.outcome, kept.detail) if kept.outcome else UNUSABLE


async def _kept(api: GithubApi, key: str) -> _StoredProbe | None:
    stored = await api.memory.get(key)
    if stored is None:
        return None
    try:
        kept = msgspec.json.decode(stored, type=_StoredProbe)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return kept if 0 <= api.now - kept.at < DAY + _later(key) else None


def _later(key: str) -> int:
    """Extra time that a result is valid after a day, so that those of a first run expire apart."""
    return zlib.crc32(key.encode()) % _SPREAD


async def _put(api: GithubApi, key: str, kept: _StoredProbe) -> None:
    if not (kept.outcome and _why(kept).passing):
        await api.memory.put(key, msgspec.json.encode(kept), days=2)
