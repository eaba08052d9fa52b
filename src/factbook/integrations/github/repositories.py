"""Reads repositories in batches, which shrink if GitHub cannot answer a whole batch."""

from collections.abc import Sequence
from typing import Final

import msgspec

from factbook.integrations.github import answers, queries
from factbook.integrations.github.answers import GithubRepository, RepositoryData
from factbook.integrations.github.graphql import Error, GithubApi, GithubQueryResult
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

AT_ONCE: Final = 20
_LEAST: Final = 5
# A batch down to one repository in parts, and some more: then perhaps it is not the size that is
# wrong, but the host.
_MOST_FAILURES: Final = 8
_MOST_IN_A_ROW: Final = 4 * _MOST_FAILURES

_HIDDEN: Final = Missing(Outcome.NOT_FOUND, "no such repository, or hidden from the credential")
_FIELDS: Final = {
    "pulls": ("pullRequests", "openPulls", queries.PULLS),
    "issues": ("openIssues", "allClosedIssues", queries.ISSUES),
    "rest": (
        *("hasIssuesEnabled", "hasVulnerabilityAlertsEnabled", queries.LANGUAGES),
        queries.COLLABORATORS,
        *("codeowners", "openAlerts", "fixedAlerts", "dismissedAlerts", "defaultBranchRef"),
    ),
}

Read = dict[str, RepositoryData | Missing]


async def read(api: GithubApi, targets: Sequence[str], since: str) -> Read:
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
        self.size = AT_ONCE
        self.found: Read = {}

    async def chunk(self, targets: Sequence[str]) -> None:
        """Read these repositories together, or in smaller and smaller parts."""
        if self._stopped:
            self.found |= dict.fromkeys(targets, self._stopped)
            return
        document = queries.batch(len(targets))
        told = await self._api.ask(document, queries.batch_variables(targets, self._since))
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
                self.found[target] = _found(data, errors)
            elif refusal := _refusal(errors):
                self.found[target] = refusal
            elif limit := _rate_limit(told.errors):
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
        return (await self._api.ask(queries.LEAST, {})).failure is not None

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
        variables = queries.batch_variables([target], self._since)
        told = await self._api.ask(queries.ALONE, variables)
        found = self.found[target] = told.failure or _together(told)
        if isinstance(found, RepositoryData):
            self._failures = 0
            return
        self._failures += 1
        if (told.failure and not told.too_heavy) or await self._is_down():
            self._stopped = found


def _found(data: msgspec.Raw | bytes, errors: list[Error]) -> RepositoryData | Missing:
    repository: GithubRepository | None = answers.decoded(data, GithubRepository)
    if repository is None:
        return UNUSABLE
    found = RepositoryData(repository)
    for error in errors:
        if place := answers.place_of(error.path[1:]):
            found.errors[place] = error.missing
    return found


def _together(told: GithubQueryResult) -> RepositoryData | Missing:
    """One repository from its parts; the fields of a failed part are missing."""
    data: dict[str, msgspec.Raw] = {}
    lost: dict[str, Missing] = {}
    errors = []
    for part in queries.PARTS:
        own = [error for error in told.errors if error.path[:1] == (part,)]
        if part_data := answers.decoded(told.data.get(part, b""), dict[str, msgspec.Raw]):
            data |= part_data
            errors += own
        else:
            missing = own[0].missing if own else UNUSABLE
            lost |= dict.fromkeys(_FIELDS[part], missing)
    if not data:
        whole = [error for error in told.errors if len(error.path) == 1]
        return _refusal(whole) or next(iter(lost.values()))
    found = _found(msgspec.json.encode(data), errors)
    if isinstance(found, RepositoryData):
        found.errors |= lost
    return found


def _refusal(errors: list[Error]) -> Missing | None:
    """The reason that the repository itself is refused, if the errors mean that."""
    for error in errors:
        if len(error.path) == 1 and error.missing.outcome is Outcome.NOT_FOUND:
            return _HIDDEN
        if len(error.path) == 1 and error.missing.outcome in {Outcome.DENIED, Outcome.REFUSED}:
            return error.missing
    return None


def _rate_limit(errors: list[Error]) -> Missing | None:
    limits = (error.missing for error in errors)
    return next((limit for limit in limits if limit.outcome is Outcome.RATE_LIMITED), None)
