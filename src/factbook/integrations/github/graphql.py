"""Asking GraphQL once: what came, and what an error stands for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from factbook.integrations.github.options import GithubOptions
from factbook.outbound import Answer, HttpClient, Memory, outcome_of_graphql_error
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

# What GitHub answers to a query that takes more than its ten seconds.
_TOO_HEAVY: Final = frozenset({502, 504})
_REST: Final = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
_NULL: Final = msgspec.Raw(b"null")
_LIMITS: Final = frozenset({"RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED"})


class Error(NamedTuple):
    """An error of an answer: where it is, and what it stands for."""

    path: tuple[object, ...]
    missing: Missing
    too_heavy: bool


class _Body(TypedDict, total=False):
    """The body of an answer. What its fields hold is decoded where their types are known."""

    data: dict[str, msgspec.Raw] | None
    errors: Any
    message: Any


@dataclass
class GithubQueryResult:
    """The end of one question: data by field, where not null, and errors; or why there are none.

    `too_heavy`: a smaller question may be answered.
    """

    data: dict[str, msgspec.Raw] = field(default_factory=dict)
    errors: list[Error] = field(default_factory=list)
    failure: Missing | None = None
    too_heavy: bool = False


class GithubApi:
    """One GitHub, asked at one time by one collection."""

    def __init__(
        self, client: HttpClient, options: GithubOptions, memory: Memory, now: int
    ) -> None:
        self._client = client
        self._options = options
        self.memory = memory
        self.now = now

    async def ask(self, document: str, variables: Mapping[str, Any]) -> GithubQueryResult:
        """Ask GraphQL. What fails in passing is asked again, unless it was too heavy."""
        told = await self._ask(document, variables, attempts=1)
        if told.failure and told.failure.outcome is Outcome.TRANSIENT and not told.too_heavy:
            return await self._ask(document, variables, attempts=2)
        return told

    async def get(self, target: str, form: Any = Any, **query: str | int) -> Answer:
        """Ask REST; data that fit the form are of its type."""
        address = f"{self._options.rest}{target}"
        return await self._client.get(address, query=query, headers=_REST, budget="core", form=form)

    async def get_again(self, target: str, **query: str | int) -> Answer:
        """Ask REST; an earlier answer that still holds costs nothing."""
        return await self._client.get(
            f"{self._options.rest}{target}",
            query=query,
            headers=_REST,
            budget="core",
            memory=self.memory,
        )

    async def _ask(
        self, document: str, variables: Mapping[str, Any], attempts: int
    ) -> GithubQueryResult:
        answer = await self._client.post(
            self._options.graphql,
            json={"query": document, "variables": variables},
            budget="graphql",
            attempts=attempts,
            form=_Body,
        )
        return _told(answer)


def _told(answer: Answer) -> GithubQueryResult:
    """What an answer of GraphQL says; data beside errors are kept."""
    if not answer.ok:
        return GithubQueryResult(failure=answer.missing, too_heavy=answer.status in _TOO_HEAVY)
    if not isinstance(answer.data, dict):
        return GithubQueryResult(failure=UNUSABLE)
    found = answer.data.get("errors")
    listed = found if isinstance(found, list) else []
    errors = [_error(error) for error in listed if isinstance(error, dict)]
    data = answer.data.get("data")
    if isinstance(data, dict):
        return GithubQueryResult({name: raw for name, raw in data.items() if raw != _NULL}, errors)
    too_heavy = any(error.too_heavy for error in errors)
    return GithubQueryResult(failure=errors[0].missing if errors else UNUSABLE, too_heavy=too_heavy)


def _error(error: Mapping[str, Any]) -> Error:
    path = error.get("path")
    outcome = outcome_of_graphql_error(error)
    too_heavy = error.get("type") in _LIMITS
    detail = "GitHub could not answer this" if outcome is Outcome.TRANSIENT else ""
    return Error(tuple(path) if isinstance(path, list) else (), Missing(outcome, detail), too_heavy)
