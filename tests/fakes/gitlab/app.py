"""A fake GitLab as an ASGI application."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from graphql import (
    ArgumentNode,
    DocumentNode,
    ExecutionResult,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    Node,
    OperationDefinitionNode,
    build_schema,
    execute_sync,
    parse,
    validate,
)
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response

from factbook.clock import SECOND, Clock, now
from tests.fakes.fake import Fake, path_of
from tests.fakes.faults import as_json
from tests.fakes.gitlab import groups, rest
from tests.fakes.gitlab.resolvers import complexity, project, projects
from tests.fakes.gitlab.state import Account, Group, Project, Token

MOST_COMPLEXITY = 250
_API = "/api/v4"
_PROJECT = re.compile(rf"{_API}/projects/([^/]+)(?:/(.+))?")
_ENTERPRISE = re.compile(r"\n  validateCodeownerFile.*")


@cache
def schema(*, enterprise: bool = True, lacks: frozenset[str] = frozenset()) -> GraphQLSchema:
    """The schema of one of the two editions, of a version that lacks these lines of it."""
    text = (Path(__file__).parent / "schema.graphql").read_text()
    for line in lacks:
        assert line in text, line
        text = text.replace(line, "")
    return build_schema(text if enterprise else _ENTERPRISE.sub("", text))


class FakeGitLab(Fake):
    """Everything that a GitLab holds, and what it was asked.

    `requests` counts by kind: graphql, project, protected, approvals, approval_rules, push_rule,
    members, tree, file, those of `groups` and other. `complexities` are those of the questions of
    GraphQL.
    """

    def __init__(
        self,
        projects: Iterable[Project] = (),
        tokens: Iterable[Token] = (),
        *,
        clock: Clock = now,
        seconds: float = 0,
    ) -> None:
        super().__init__(seconds=seconds)
        self.projects = list(projects)
        self.groups: list[Group] = []
        self.accounts: list[Account] = []
        self.tokens = {token.value: token for token in tokens}
        self.complexities: list[int] = []
        self.lacks: frozenset[str] = frozenset()
        self.version = "18.5.1-ee"
        self._clock = clock

    def kind(self, request: HttpRequest) -> str:
        """As `requests` counts it."""
        path = path_of(request)
        if path == "/api/graphql":
            return "graphql"
        if path == f"{_API}/version":
            return "version"
        match = _PROJECT.fullmatch(path)
        return rest.kind(match[2]) if match else groups.kind(path)

    async def answer(self, request: HttpRequest) -> Response:
        """GraphQL or REST, within the limit of the token."""
        token = self._token(request)
        path = path_of(request)
        is_graphql = path == "/api/graphql" and request.method == "POST"
        if token is None and is_graphql:
            return as_json({"errors": [{"message": "Invalid token"}]}, 401)
        if token is None:
            return as_json({"message": "401 Unauthorized"}, 401)
        if token.used >= token.limit:
            wait = str((token.reset_at - self._clock()) // SECOND)
            headers = {**_limits(token), "retry-after": wait}
            return PlainTextResponse("Retry later\n", 429, headers)
        token.used += 1
        response = (
            await self._ask_graphql(request, token)
            if is_graphql
            else self._rest(request, token, path)
        )
        response.headers.update(_limits(token))
        return response

    def find(self, name: str, token: Token) -> Project | None:
        """The project of exactly this name that the token sees, as GraphQL does."""
        seen = (one for one in self.projects if one.name not in token.hidden)
        return next((one for one in seen if one.name == name), None)

    def _known(self, name: str, token: Token) -> Project | None:
        """The project of this number, or name in any case, former ones too, as REST does."""
        for one in self.projects:
            names = {str(one.number), one.name.lower(), *one.old_names}
            if name.lower() in names and one.name not in token.hidden:
                return one
        return None

    def _rest(self, request: HttpRequest, token: Token, path: str) -> Response:
        if path == "/api/v4/projects":
            return as_json([])
        if path == f"{_API}/version":
            return as_json({"version": self.version, "revision": "0"})
        if groups.kind(path) != "other":
            return groups.said(self, token, path, dict(parse_qsl(request.url.query)))
        match = _PROJECT.fullmatch(path)
        name = unquote(match[1]) if match else ""
        found = self._known(name, token)
        if match is None or found is None:
            return as_json({"message": "404 Project Not Found"}, 404)
        if name in found.old_names:
            below = f"/{match[2]}" if match[2] else ""
            address = f"{request.base_url}api/v4/projects/{found.number}{below}"
            return Response(status_code=302, headers={"location": address})
        return rest.said(found, token, match[2], dict(parse_qsl(request.url.query)))

    async def _ask_graphql(self, request: HttpRequest, token: Token) -> Response:
        asked = msgspec.json.decode(await request.body())
        found = self.find(asked["variables"].get("path", ""), token)
        enterprise = found is None or found.enterprise
        document, invalid = _parsed(asked["query"], enterprise, self.lacks)
        if invalid:
            return as_json({"errors": [_undefined(error, document) for error in invalid]})
        self.complexities.append(complexity(document, asked["variables"]))
        if self.complexities[-1] > MOST_COMPLEXITY:
            text = f"Query has complexity of {self.complexities[-1]}, which exceeds max complexity"
            return as_json({"errors": [{"message": f"{text} of {MOST_COMPLEXITY}"}]})
        root = {
            "project": lambda _, fullPath: self._project(fullPath, token),
            "group": lambda _, fullPath: self._group(fullPath, token),
        }
        graphql = schema(enterprise=enterprise, lacks=self.lacks)
        variables = asked["variables"]
        result = execute_sync(graphql, document, root, variable_values=variables)
        assert isinstance(result, ExecutionResult)
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            answer["errors"] = [error.formatted for error in result.errors]
        return as_json(answer)

    def _project(self, name: str, token: Token) -> dict[str, Any] | None:
        found = self.find(name, token)
        return project(found, token) if found else None

    def _group(self, path: str, token: Token) -> dict[str, Any] | None:
        found = groups.find(self, path, token)
        if found is None:
            return None
        below = groups.projects_of(self, found, token)
        # As with the other fields, what is not among the arguments has no default.
        return {
            "projects": lambda _, includeSubgroups=False, ids=None, **arguments: projects(
                below, token, ids, **arguments
            )
        }

    def _token(self, request: HttpRequest) -> Token | None:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        return self.tokens.get(value) if scheme.lower() == "bearer" else None


@cache
def _parsed(
    document: str, enterprise: bool, lacks: frozenset[str]
) -> tuple[DocumentNode, list[GraphQLError]]:
    parsed = parse(document)
    return parsed, validate(schema(enterprise=enterprise, lacks=lacks), parsed)


def _limits(token: Token) -> dict[str, str]:
    return {
        "ratelimit-limit": str(token.limit),
        "ratelimit-remaining": str(max(token.limit - token.used, 0)),
        "ratelimit-reset": str(token.reset_at // SECOND),
    }


def _undefined(error: GraphQLError, document: DocumentNode) -> dict[str, Any]:
    node = (error.nodes or [])[0]
    code = "argumentNotAccepted" if isinstance(node, ArgumentNode) else "undefinedField"
    path = _path(document, node)
    return {"message": error.message, "path": path, "extensions": {"code": code}}


def _path(document: DocumentNode, wanted: Node) -> list[str]:
    """The names of the operation, of the fields around a node and of itself."""
    [operation] = document.definitions
    assert isinstance(operation, OperationDefinitionNode)
    open_: list[tuple[list[str], FieldNode]] = [
        ([f"query {operation.name.value if operation.name else ''}"], node)
        for node in operation.selection_set.selections
        if isinstance(node, FieldNode)
    ]
    for path, node in open_:
        here = [*path, (node.alias or node.name).value]
        if node is wanted:
            return here
        for argument in node.arguments or ():
            if argument is wanted:
                return [*here, argument.name.value]
        below = node.selection_set.selections if node.selection_set else ()
        open_ += [(here, one) for one in below if isinstance(one, FieldNode)]
    raise AssertionError(wanted)
