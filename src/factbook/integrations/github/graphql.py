"""GraphQL and REST requests to a GitHub instance, with the meaning of their errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from factbook.integrations.code_host import CodeHostApi
from factbook.integrations.github.options import GithubOptions
from factbook.outbound import graphql_fields
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, judge_graphql_error

# What GitHub answers to a query that takes more than its ten seconds.
_TOO_HEAVY: Final = frozenset({502, 504})
_REST: Final = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
_VERSION: Final = re.compile(r"\d{1,3}(?:\.\d{1,4}){1,2}", re.ASCII)
_NULL: Final = msgspec.Raw(b"null")
_LIMITS: Final = frozenset({"RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED"})


class Error(NamedTuple):
    """Error of an answer: its path, and the reason that it gives."""

    path: tuple[object, ...]
    missing: Missing
    too_heavy: bool


class _Body(TypedDict, total=False):
    """Body of an answer; the fields are decoded where their types are known."""

    data: dict[str, msgspec.Raw] | None
    errors: Any
    message: Any


@dataclass
class GithubQueryResult:
    """Result of one query: non-null data by field, and errors; or the reason for its failure.

    `too_heavy`: a smaller query may succeed.
    """

    data: dict[str, msgspec.Raw] = field(default_factory=dict)
    errors: list[Error] = field(default_factory=list)
    failure: Missing | None = None
    too_heavy: bool = False


class GithubApi(CodeHostApi[GithubOptions]):
    """Client for a GitHub instance, with the time of one collection."""

    async def ask(self, document: str, variables: Mapping[str, Any]) -> GithubQueryResult:
        """Send a GraphQL query. A transient failure is retried, unless the query was too heavy."""
        told = await self._ask(document, variables, attempts=1)
        if told.failure and told.failure.outcome is Outcome.TRANSIENT and not told.too_heavy:
            return await self._ask(document, variables, attempts=2)
        return told

    async def get(self, target: str, form: Any = Any, **query: str | int) -> Answer:
        """Send a REST request; data that match the form are decoded as it."""
        address = f"{self._options.rest}{target}"
        return await self._client.get(address, query=query, headers=_REST, budget="core", form=form)

    async def get_again(self, target: str, **query: str | int) -> Answer:
        """Send a conditional REST request; an earlier answer that is still valid uses no quota."""
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
        return _told(answer, document)


def _told(answer: Answer, document: str) -> GithubQueryResult:
    """The data and errors of a GraphQL answer; data beside errors are kept."""
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
    if refused := graphql_fields.list_unknown_fields(found):
        fields = graphql_fields.name_refused_fields(document, refused) or "a field"
        version = _VERSION.fullmatch(answer.headers.get("x-github-enterprise-version", ""))
        host = f"GitHub Enterprise Server {version[0]}" if version else "this GitHub"
        cause = Missing(Outcome.FEATURE_OFF, f"{host} lacks {fields} in GraphQL")
        return GithubQueryResult(failure=cause)
    too_heavy = any(error.too_heavy for error in errors)
    return GithubQueryResult(failure=errors[0].missing if errors else UNUSABLE, too_heavy=too_heavy)


def _error(error: Mapping[str, Any]) -> Error:
    path = error.get("path")
    outcome, cause = judge_graphql_error(error)
    too_heavy = error.get("type") in _LIMITS
    detail = "GitHub could not answer this" if outcome is Outcome.TRANSIENT else cause
    return Error(tuple(path) if isinstance(path, list) else (), Missing(outcome, detail), too_heavy)
