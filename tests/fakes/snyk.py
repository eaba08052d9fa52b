"""A fake Snyk as an ASGI application: projects and issues of organizations, in its REST form."""

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tests.fakes.fake import Fake, path_of

_LISTING = re.compile(r"/rest/orgs/([^/]+)/(projects|issues)")
_MOMENT = "2026-11-20T03:00:00Z"

Json = dict[str, Any]
T = TypeVar("T", "Project", "Issue")


def uuid(number: int) -> str:
    """An id; the same for the same number."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


@dataclass
class Project:
    """A project. `counts` are critical, high, medium and low; None before the first scan."""

    number: int
    target: str
    counts: tuple[int, int, int, int] | None = (0, 0, 0, 0)
    origin: str = "github"
    status: str = "active"
    url: str | None = None
    target_number: int = 0
    expands: bool = True

    @property
    def id(self) -> str:
        return uuid(self.number)

    @property
    def target_id(self) -> str:
        """The same for projects of the same target, unless its number says otherwise."""
        return uuid(self.target_number or 0x1000 + sum(self.target.encode()))


@dataclass
class Issue:
    """An issue of a project, or of an environment."""

    number: int
    project: int
    severity: str
    status: str = "open"
    ignored: bool = False
    scanned: str = "project"

    @property
    def id(self) -> str:
        return uuid(0x100000 + self.number)


@dataclass
class Organization:
    """What an organization holds."""

    number: int
    projects: list[Project] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)

    @property
    def id(self) -> str:
        return uuid(self.number)


@dataclass
class Token:
    """Who asks. `forbidden`: organizations, by number, that it may not view."""

    value: str
    plan_has_api: bool = True
    reads_history: bool = True
    forbidden: frozenset[int] = frozenset()


class FakeSnyk(Fake):
    """Everything that a Snyk holds, and what it was asked.

    `requests` counts by kind: projects, issues and other. After the last row a page links to one
    whose cursor is of an empty id: it has no row, or with `circular` it is the first one again.
    `links` is what addresses of further pages begin with. `limit`: how many calls are answered
    before all are answered 429. `headers` go with every good answer. `lacking` are severities that
    counts leave out.
    """

    def __init__(
        self, organizations: Iterable[Organization], tokens: Iterable[Token], *, seconds: float = 0
    ) -> None:
        super().__init__(seconds=seconds)
        self.organizations = {one.id: one for one in organizations}
        self.tokens = {token.value: token for token in tokens}
        self.asked: list[dict[str, str]] = []
        self.circular = False
        self.lacking: frozenset[str] = frozenset()
        self.links = "/rest"
        self.most = 100
        self.limit: int | None = None
        self.headers: dict[str, str] = {}

    def kind(self, request: Request) -> str:
        """As `requests` counts it."""
        match = _LISTING.fullmatch(path_of(request))
        return match[2] if match else "other"

    async def answer(self, request: Request) -> Response:
        """A page of a listing, or a refusal in Snyk's words."""
        match = _LISTING.fullmatch(path_of(request))
        organization = self.organizations.get(match[1]) if match else None
        token = self._token(request)
        if refusal := self._refusal(request, token, organization):
            return refusal
        assert match
        assert organization
        assert token
        query = dict(request.query_params)
        self.asked.append(query)
        path = match[0].removeprefix("/rest")
        if match[2] == "projects":
            render = partial(_project, organization, token, query, self.lacking)
            return self._page(path, organization.projects, render, query)
        issues = [one for one in organization.issues if _is(one, query)]
        return self._page(path, issues, partial(_issue, organization), query)

    def _token(self, request: Request) -> Token | None:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        return self.tokens.get(value) if scheme == "token" else None

    def _refusal(
        self, request: Request, token: Token | None, organization: Organization | None
    ) -> Response | None:
        refusals = [
            (self.limit is not None and self.requests.total() > self.limit, 429, "Too Many"),
            (token is None, 401, "Unauthorized"),
            (token and not token.plan_has_api, 403, "The org is not entitled for api access"),
            (organization is None, 404, "Not Found"),
            (token and organization and organization.number in token.forbidden, 403, "Forbidden"),
            ("version" not in request.query_params, 400, "The version parameter is required"),
        ]
        return next((_refusal(status, text) for fits, status, text in refusals if fits), None)

    def _page(
        self, path: str, rows: Sequence[T], render: Callable[[T], Json], query: dict[str, str]
    ) -> Response:
        size = min(int(query.get("limit", 10)), self.most)
        cursor = query.get("starting_after", "").removeprefix("v1.")
        last = _decoded(cursor)
        start = next((i + 1 for i, row in enumerate(rows) if row.id == last), 0)
        if cursor and not last and not self.circular:
            start = len(rows)
        shown = rows[start : start + size]
        links = {}
        if shown:
            following = _encoded(shown[-1].id if start + size < len(rows) else "")
            links["next"] = (
                f"{self.links}{path}?version={query['version']}&limit={size}"
                f"&starting_after=v1.{following}"
            )
        body = {"jsonapi": {"version": "1.0"}, "data": list(map(render, shown)), "links": links}
        return _as_json(body, 200, self.headers)


def _encoded(id_: str) -> str:
    """A cursor after the row with this id, as Snyk writes it."""
    return quote(base64.b64encode(msgspec.json.encode({"id": id_})))


def _decoded(cursor: str) -> str:
    """The id of the row that a cursor is after; empty without one."""
    return str(msgspec.json.decode(base64.b64decode(cursor))["id"]) if cursor else ""


def _project(
    organization: Organization,
    token: Token,
    query: dict[str, str],
    lacking: frozenset[str],
    one: Project,
) -> Json:
    target: dict[str, Any] = {"id": one.target_id, "type": "target"}
    if query.get("expand") == "target" and one.expands:
        target["attributes"] = {"display_name": one.target}
        if one.url:
            target["attributes"]["url"] = one.url
    meta: dict[str, Any] = {}
    if query.get("meta.latest_issue_counts") == "true" and token.reads_history and one.counts:
        names = ("critical", "high", "medium", "low")
        given = zip(names, one.counts, strict=True)
        counts: Json = {name: count for name, count in given if name not in lacking}
        meta["latest_issue_counts"] = {**counts, "updated_at": _MOMENT}
    return {
        "id": one.id,
        "type": "project",
        "attributes": {
            "name": f"{one.target}(main):package-{one.number}.json",
            "type": "npm",
            "target_file": f"package-{one.number}.json",
            "target_reference": "main",
            "origin": one.origin,
            "created": _MOMENT,
            "status": one.status,
            "read_only": False,
            "settings": {"recurring_tests": {"frequency": "daily"}, "pull_requests": {}},
        },
        "relationships": {
            "organization": _related("org", organization.id),
            "target": {"data": target, "links": {"related": f"/targets/{one.target_id}"}},
        },
        "meta": meta,
    }


def _issue(organization: Organization, one: Issue) -> Json:
    return {
        "id": one.id,
        "type": "issue",
        "attributes": {
            "key": f"SNYK-{one.number}",
            "title": "Prototype Pollution",
            "type": "package_vulnerability",
            "created_at": _MOMENT,
            "updated_at": _MOMENT,
            "effective_severity_level": one.severity,
            "status": one.status,
            "ignored": one.ignored,
        },
        "relationships": {
            "organization": {"data": {"id": organization.id, "type": "organization"}},
            "scan_item": {"data": {"id": uuid(one.project), "type": one.scanned}},
        },
    }


def _is(one: Issue, query: dict[str, str]) -> bool:
    """Whether the issue is among those that are asked for."""
    wanted = {"status": one.status, "effective_severity_level": one.severity}
    wanted["ignored"] = str(one.ignored).lower()
    return all(value in query.get(name, value).split(",") for name, value in wanted.items())


def _related(type_: str, id_: str) -> dict[str, Any]:
    return {"data": {"id": id_, "type": type_}, "links": {"related": f"/{type_}s/{id_}"}}


def _refusal(status: int, detail: str) -> Response:
    error = {"status": str(status), "detail": detail}
    return _as_json({"jsonapi": {"version": "1.0"}, "errors": [error]}, status)


def _as_json(body: Any, status: int, headers: dict[str, str] | None = None) -> Response:
    content = msgspec.json.encode(body)
    return Response(content, status, headers, "application/vnd.api+json")
