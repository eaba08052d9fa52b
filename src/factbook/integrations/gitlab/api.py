"""GraphQL and REST requests to a GitLab instance, with the meaning of their errors."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

from factbook.integrations.code_host import CodeHostApi
from factbook.integrations.gitlab.answers import HIDDEN, NO_PREMIUM
from factbook.integrations.gitlab.options import GitlabOptions
from factbook.outbound import Answer, verdict_on_graphql_error
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, too_many

T = TypeVar("T")

PER_PAGE: Final = 100

# GitLab's words for what it does not show, and its mark of a field that an edition lacks.
_NOT_SHOWN: Final = "you don't have permission"
_UNDEFINED: Final = "undefinedField"


class GitlabQueryResult(NamedTuple):
    """Result of one query: data, and errors by the field of the project that they refer to.

    `failure` is the reason that there are no data at all.
    """

    data: Mapping[str, Any]
    errors: dict[str, Missing]
    failure: Missing | None = None


class GitlabApi(CodeHostApi[GitlabOptions]):
    """Client for a GitLab instance, with the time of one collection."""

    async def ask(self, document: str, **variables: str) -> GitlabQueryResult:
        """Send a GraphQL query."""
        question = {"query": document, "variables": variables}
        return told(await self._client.post(self._options.graphql, json=question))

    async def get(self, target: str, **query: str | int) -> Answer:
        """Send a REST request; redirects from a project's former name are followed."""
        return await self._client.get(f"{self._options.rest}{target}", query=query, follow=True)

    async def one(self, target: str, type_: type[T]) -> T | Missing:
        """The answer of REST as this type, or the reason for its absence."""
        return (await self.get(target)).read_as(type_)

    async def every(
        self, target: str, type_: type[list[T]], *, pages: int, **query: str | int
    ) -> list[T] | Missing:
        """A whole list of REST from at most `pages` pages, or the reason for its absence."""
        found: list[T] = []
        more: dict[str, str] = {}
        asked: list[dict[str, str]] = []
        for _ in range(pages):
            asked.append(more)
            answer = await self.get(target, per_page=PER_PAGE, **query, **more)
            page = answer.read_as(type_)
            if isinstance(page, Missing):
                return page
            found += page
            more = _more(answer)
            if not more:
                return found
            if more in asked:
                return REPEATED
        return too_many(pages * PER_PAGE, "rows in one list of GitLab")


def told(answer: Answer) -> GitlabQueryResult:
    """The data and errors of a GraphQL answer; data beside errors are kept."""
    if not answer.ok:
        return GitlabQueryResult({}, {}, answer.missing)
    if not isinstance(answer.data, dict):
        return GitlabQueryResult({}, {}, UNUSABLE)
    listed = answer.data.get("errors")
    errors = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    data = answer.data.get("data")
    if not isinstance(data, dict):
        return GitlabQueryResult({}, {}, _missing(errors[0]) if errors else UNUSABLE)
    return GitlabQueryResult(data, {_field(error): _missing(error) for error in errors})


def _field(error: Mapping[str, Any]) -> str:
    """The project's field that an error refers to; "" for the whole project."""
    path = error.get("path")
    names = path[1:2] if isinstance(path, list) and path[:1] == ["project"] else []
    return names[0] if names and isinstance(names[0], str) else ""


def _missing(error: Mapping[str, Any]) -> Missing:
    extensions = error.get("extensions")
    if isinstance(extensions, dict) and extensions.get("code") == _UNDEFINED:
        return NO_PREMIUM
    message = error.get("message")
    if isinstance(message, str) and _NOT_SHOWN in message:
        return HIDDEN
    outcome, cause = verdict_on_graphql_error(error)
    return Missing(
        outcome, "GitLab could not answer this" if outcome is Outcome.TRANSIENT else cause
    )


def _more(answer: Answer) -> dict[str, str]:
    """The query parameters for the next page, from the Link header; empty after the last page.

    The header's URL itself is not used: behind a proxy, its host may differ from ours.
    """
    try:
        query = parse_qs(urlsplit(answer.link("next") or "").query)
    except ValueError:
        return {}
    return {name: query[name][0] for name in ("page_token", "page") if name in query}
