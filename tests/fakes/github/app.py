"""A fake GitHub as an ASGI application: GraphQL on GitHub's schema, REST, limits and faults."""

import hashlib
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    execute_sync,
    parse,
    validate,
)
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import HOUR, MINUTE, SECOND, Clock, now
from tests.fakes import faults
from tests.fakes.fake import Fake, path_of
from tests.fakes.github import rest, schema
from tests.fakes.github.faults import SECONDARY
from tests.fakes.github.organization import Organization
from tests.fakes.github.resolvers import Root
from tests.fakes.github.rest import NOT_FOUND, Said, refusal
from tests.fakes.github.state import Member, Repository, Team, Token, stamp

_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)/(.*)")
_BY_ID = re.compile(r"/repositories/([^/]+)/(.*)")
_INSTALLATION = re.compile(r"/app/installations/(\d+)/access_tokens")


@dataclass
class App:
    """An app whose tokens, with these rights, are given to who signs with its key."""

    id: str
    installation: str
    public_key: str
    token: Token


class FakeGitHub(Fake):
    """Everything that a GitHub holds, and what it was asked.

    `requests` counts by kind: graphql, tree, protection, alerts, contents, app, moved and other;
    `not_modified` answers of 304. `asked` holds the bodies of GraphQL requests.
    `most_repositories`: a GraphQL request for more of them is answered 502, and
    `most_with_limits` with partial results and an error about resource limits. `points_a_minute`
    of REST are answered, and `too_fast` counts those that were refused for it. A larger page of a
    listing than `most_in_page` is answered 502.
    """

    def __init__(
        self,
        repositories: Iterable[Repository] = (),
        tokens: Iterable[Token] = (),
        *,
        enterprise: bool = False,
        clock: Clock = now,
        whole_schema: bool = False,
        seconds: float = 0,
    ) -> None:
        super().__init__(seconds=seconds)
        self.repositories = list(repositories)
        self.tokens = {token.value: token for token in tokens}
        self.teams: list[Team] = []
        self.members: list[Member] = []
        self.most_in_page = 100
        self.apps: list[App] = []
        self.asked: list[dict[str, Any]] = []
        self.not_modified = 0
        self.points = 1
        self.points_a_minute = 1_000_000
        self.too_fast = 0
        self._answered: deque[int] = deque()
        self.most_repositories = 1_000
        self.most_with_limits = 1_000
        self.most_tree_entries = 100_000
        self._prefix = "/api/v3" if enterprise else ""
        self._graphql = "/api/graphql" if enterprise else "/graphql"
        self._clock = clock
        self._whole_schema = whole_schema

    def find(self, name: str) -> Repository | None:
        """The repository that has or had this name, in any case."""
        wanted = name.lower()
        for one in self.repositories:
            if wanted in {other.lower() for other in (one.name, *one.old_names)}:
                return one
        return None

    def kind(self, request: Request) -> str:
        """As `requests` counts it."""
        path = path_of(request)
        if path == self._graphql:
            return "graphql"
        if path.startswith(f"{self._prefix}/app/"):
            return "app"
        match = _REPOSITORY.fullmatch(path.removeprefix(self._prefix))
        return rest.kind(match[2]) if match else "other"

    async def answer(self, request: Request) -> Response:
        """GraphQL, REST, or the token of an app's installation."""
        path = path_of(request)
        if path == self._graphql and request.method == "POST":
            return await self._ask_graphql(request)
        if not path.startswith(f"{self._prefix}/"):
            return as_json(NOT_FOUND)
        path = path.removeprefix(self._prefix)
        if match := _INSTALLATION.fullmatch(path):
            return as_json(self._installation(request, match[1]))
        token = self._token(request)
        if token is None:
            return as_json(refusal(401, "Bad credentials"))
        if token.used["core"] >= token.limits["core"]:
            said = refusal(403, "API rate limit exceeded for user ID 1.")
            return as_json(said, self._limits(token, "core"))
        return self._rest(request, token, path)

    def _is_too_fast(self) -> bool:
        now = self._clock()
        while self._answered and self._answered[0] <= now - MINUTE:
            self._answered.popleft()
        self._answered.append(now)
        return len(self._answered) > self.points_a_minute

    def _rest(self, request: Request, token: Token, path: str) -> Response:
        if self._is_too_fast():
            self.too_fast += 1
            return as_json(refusal(403, SECONDARY), {"retry-after": "60"})
        said = self._said(request, token, path)
        body = said.body if isinstance(said.body, bytes) else msgspec.json.encode(said.body)
        etag = f'W/"{hashlib.sha256(body).hexdigest()}"'
        headers = {"etag": etag, "cache-control": "private, max-age=60, s-maxage=60"}
        if said.link:
            base = str(request.url).split("/repos/", 1)[0]
            name = path.split("/")[2:4]
            headers["link"] = f'<{base}/repos/{"/".join(name)}/{said.link}>; rel="next"'
        if said.status == 301:
            headers["location"] = said.body["url"]
        if said.status == 200 and request.headers.get("if-none-match") == etag:
            self.not_modified += 1
            return Response(status_code=304, headers=headers | self._limits(token, "core"))
        token.used["core"] += 1
        return as_json(said, headers | self._limits(token, "core"))

    def _said(self, request: Request, token: Token, path: str) -> Said:
        moved = _BY_ID.fullmatch(path)
        match = moved or _REPOSITORY.fullmatch(path)
        if not match:
            return NOT_FOUND
        found = self._by_id().get(match[1]) if moved else self.find(match[1])
        if found is None or found.name in token.hidden:
            return NOT_FOUND
        if not moved and match[1].lower() != found.name.lower():
            self.requests["moved"] += 1
            base = str(request.url).split("/repos/", 1)[0]
            url = f"{base}/repositories/{found.id}/{match[2]}"
            return Said(301, {"message": "Moved Permanently", "url": url})
        query = dict(parse_qsl(request.url.query))
        return rest.said(found, token, match[2], query, self.most_tree_entries)

    async def _ask_graphql(self, request: Request) -> Response:
        token = self._token(request)
        if token is None:
            return as_json(refusal(401, "Bad credentials"))
        asked = msgspec.json.decode(await request.body())
        self.asked.append(asked)
        if token.used["graphql"] + self.points > token.limits["graphql"]:
            token.used["graphql"] = token.limits["graphql"]
            text = "API rate limit already exceeded for user ID 1."
            error = {"type": "RATE_LIMITED", "code": "graphql_rate_limit", "message": text}
            return as_json(Said(200, {"errors": [error]}), self._limits(token, "graphql"))
        token.used["graphql"] += self.points
        variables = asked.get("variables", {})
        names = [f"{variables[f'o{i}']}/{variables[f'n{i}']}" for i in range(_size(variables))]
        found = [self.find(name) for name in names]
        heavy = any(one.too_heavy for one in found if one) and "query Alone" not in asked["query"]
        too_many = variables.get("size", 0) > self.most_in_page
        if heavy or too_many or len(names) > self.most_repositories:
            return Response("<html>502 Bad Gateway</html>", 502, media_type="text/html")
        answer = self._executed(asked, token)
        if len(names) > self.most_with_limits:
            _cut(answer, self.most_with_limits)
        return as_json(Said(200, answer), self._limits(token, "graphql"))

    def _executed(self, asked: dict[str, Any], token: Token) -> dict[str, Any]:
        graphql = schema.whole() if self._whole_schema else schema.part()
        document = _parsed(graphql, asked["query"])
        root = Root(self.find, self._by_id(), token, self._organization)
        result = execute_sync(graphql, document, root, variable_values=asked.get("variables"))
        assert isinstance(result, ExecutionResult)
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            answer["errors"] = [_error(error) for error in result.errors]
        return answer

    def _organization(self, login: str, token: Token) -> Organization | None:
        owners = {one.name.partition("/")[0].lower() for one in self.repositories}
        if login.lower() not in owners:
            return None
        return Organization(login, self.repositories, self.teams, self.members, token)

    def _token(self, request: Request) -> Token | None:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        token = self.tokens.get(value) if scheme.lower() == "bearer" else None
        if token and token.expires_at is not None and token.expires_at <= self._clock():
            return None
        return token

    def _installation(self, request: Request, installation: str) -> Said:
        proof = request.headers.get("authorization", "").removeprefix("Bearer ")
        for app in self.apps:
            try:
                key = RSAKey.import_key(app.public_key)
                claims = jwt.decode(proof, key, ["RS256"]).claims
            except (JoseError, ValueError):
                continue
            moment = self._clock() // SECOND
            fits = claims["iat"] <= moment < claims["exp"] <= moment + 600
            if fits and claims["iss"] == app.id and installation == app.installation:
                return self._installed(app)
        return refusal(401, "A JSON web token could not be decoded")

    def _installed(self, app: App) -> Said:
        app.token.value = f"ghs_{self.requests['app']:036}"
        app.token.expires_at = self._clock() + HOUR
        self.tokens[app.token.value] = app.token
        return Said(201, {"token": app.token.value, "expires_at": stamp(app.token.expires_at)})

    def _limits(self, token: Token, resource: str) -> dict[str, str]:
        limit, used = token.limits[resource], token.used[resource]
        return {
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": str(max(limit - used, 0)),
            "x-ratelimit-used": str(used),
            "x-ratelimit-reset": str(token.reset_at // SECOND),
            "x-ratelimit-resource": resource,
        }

    def _by_id(self) -> dict[str, Repository]:
        return {one.id: one for one in self.repositories}


@lru_cache(maxsize=64)
def _parsed(graphql: GraphQLSchema, document: str) -> DocumentNode:
    parsed = parse(document)
    assert validate(graphql, parsed) == []
    return parsed


def _size(variables: dict[str, Any]) -> int:
    return sum(1 for name in variables if re.fullmatch(r"n\d+", name))


def as_json(said: Said, headers: dict[str, str] | None = None) -> Response:
    """A response with a JSON body, or with the bytes of a file."""
    if isinstance(said.body, bytes):
        return Response(said.body, said.status, headers, "application/vnd.github.raw+json")
    return faults.as_json(said.body, said.status, headers)


def _error(error: GraphQLError) -> dict[str, Any]:
    """GitHub puts an error's type beside its message."""
    formatted = dict(error.formatted)
    extensions: Any = formatted.pop("extensions", None) or {}
    return {**extensions, **formatted}


def _cut(answer: dict[str, Any], most: int) -> None:
    """Leave out what exceeds a limit on resources, as GitHub does."""
    errors = answer.setdefault("errors", [])
    names = [name for name in answer["data"] if re.fullmatch(r"r\d+", name)]
    for name in names[most:]:
        answer["data"][name] = None
        text = "Resource limits for this query exceeded."
        errors.append({"type": "RESOURCE_LIMITS_EXCEEDED", "path": [name], "message": text})
