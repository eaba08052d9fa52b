"""A fake Gitea or Forgejo as an ASGI application: lists in pages, rights, limits and faults.

Statuses and texts are those of Gitea 1.27.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import SECOND
from tests.fakes.fake import Fake, path_of
from tests.fakes.faults import as_json
from tests.fakes.gitea import organization, state
from tests.fakes.gitea.said import NOT_FOUND, Said, refusal
from tests.fakes.gitea.state import Account, Pull, Repository, Team, Token

Query = Mapping[str, str]

BASE = "/api/v1"
_KINDS = {
    "repository": re.compile(r""),
    "pulls": re.compile(r"/pulls"),
    "issues": re.compile(r"/issues"),
    "languages": re.compile(r"/languages"),
    "collaborators": re.compile(r"/collaborators"),
    "branch": re.compile(r"/branches/([^/]+)"),
    "rules": re.compile(r"/branch_protections"),
    "tree": re.compile(r"/git/trees/([^/]+)"),
    "file": re.compile(r"/raw/(.+)"),
    "contents": re.compile(r"/contents/(.+)"),
}
_REPOSITORY = re.compile(rf"{BASE}/repos/([^/]+/[^/]+)(/.*|)")


class Exchange(NamedTuple):
    """A request and the status of its answer."""

    path: str
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    status: int


_NO_CODE = refusal(403, "user should have specific read permission or be a repo admin")
_NO_ADMIN = refusal(403, "user should be an owner or a collaborator with admin write")
_NO_WRITE = refusal(403, "user should have a permission to write to the repo")


class FakeGitea(Fake):
    """Everything that a Gitea holds, and what it was asked.

    `requests` counts by kind: the keys of `_KINDS`, those of `organization`, moved and other.
    `most` is the largest page, `most_entries` that of a tree. `limit` is how many calls are
    answered before 429.
    """

    def __init__(
        self,
        repositories: Iterable[Repository] = (),
        tokens: Iterable[Token] = (),
        *,
        seconds: float = 0,
    ) -> None:
        super().__init__(seconds=seconds)
        self.repositories = list(repositories)
        self.teams: list[Team] = []
        self.accounts: list[Account] = []
        self.tokens = {token.value: token for token in tokens}
        self.exchanges: list[Exchange] = []
        self.most = 50
        self.most_entries = 1_000
        self.totals = True
        self.limit: int | None = None

    def kind(self, request: Request) -> str:
        """As `requests` counts it."""
        match = _REPOSITORY.fullmatch(path_of(request))
        fits = (name for name, one in _KINDS.items() if match and one.fullmatch(match[2]))
        return next(fits, organization.kind(path_of(request).removeprefix(BASE)))

    async def answer(self, request: Request) -> Response:
        """What Gitea says."""
        query, headers = parse_qsl(request.url.query), dict(request.headers)
        if self.limit is not None and sum(self.requests.values()) > self.limit:
            said = refusal(429, "Too many requests")
        else:
            said = self._said(request, dict(query))
        if isinstance(said.body, bytes) and headers.get("if-none-match") == _etag(said.body):
            said = Said(304, said.body)
        self.exchanges.append(Exchange(path_of(request), query, headers, said.status))
        sent: dict[str, str] = {}
        if said.status == 307:
            sent["location"] = said.body
        if said.total is not None and self.totals:
            sent["x-total-count"] = str(said.total)
        if isinstance(said.body, bytes):
            sent["etag"] = _etag(said.body)
            return Response(said.body, said.status, sent, "text/plain")
        return as_json(said.body, said.status, sent)

    def _said(self, request: Request, query: Query) -> Said:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        token = self.tokens.get(value) if scheme == "token" else None
        if token is None:
            return refusal(401, "user does not exist [uid: 0, name: ]")
        path = path_of(request).removeprefix(BASE)
        if organization.kind(path) != "other" and (path != "/repos/search" or "uid" in query):
            return organization.said(self, token, path, query)
        if path == "/repos/search":
            allowed = "repository" in token.scopes
            return Said(200, {"ok": True, "data": []}) if allowed else refusal(403, "token scope")
        return self._of_repository(request, token, query)

    def _of_repository(self, request: Request, token: Token, query: Query) -> Said:
        match = _REPOSITORY.fullmatch(path_of(request))
        found = match and self._find(match[1])
        if not (match and found) or found.name in token.hidden:
            return NOT_FOUND
        if match[1].lower() != found.name.lower():
            self.requests["moved"] += 1
            return Said(307, path_of(request).replace(match[1], found.name, 1))
        kind = self.kind(request)
        scope = "issue" if kind in {"issues"} else "repository"
        if scope not in token.scopes:
            return refusal(403, f"token does not have at least one of [read:{scope}]")
        if kind == "other":
            return NOT_FOUND
        part = _KINDS[kind].fullmatch(match[2])
        assert part
        wanted = unquote(part[1]) if part.groups() else ""
        answer: Callable[[Repository, Token, Query, str], Said] = getattr(self, f"_{kind}")
        return answer(found, token, query, wanted)

    def _find(self, name: str) -> Repository | None:
        wanted = name.lower()
        for one in self.repositories:
            if wanted in {other.lower() for other in (one.name, *one.old_names)}:
                return one
        return None

    def page(self, rows: list[Any], query: Query, form: Callable[[Any], Any]) -> Said:
        limit = min(int(query.get("limit", 30)), self.most)
        start = (int(query.get("page", 1)) - 1) * limit
        return Said(200, [form(row) for row in rows[start : start + limit]], len(rows))

    def _repository(self, one: Repository, _: Token, __: Query, ___: str) -> Said:
        body = {
            "id": one.number or self.repositories.index(one) + 1,
            "full_name": one.name,
            "empty": one.empty,
            "mirror": one.mirror,
            "default_branch": one.branch,
            "has_issues": one.has_issues or one.external_tracker,
            "has_pull_requests": one.has_pulls,
            "open_issues_count": 0,
        }
        if one.external_tracker:
            body["external_tracker"] = {"external_tracker_url": "https://tracker.example.com"}
        return Said(200, body)

    def _pulls(self, one: Repository, _: Token, query: Query, __: str) -> Said:
        return self._of_pulls(one, query, state.pull)

    def _of_pulls(self, one: Repository, query: Query, form: Callable[[Pull], Any]) -> Said:
        if not one.has_pulls or one.mirror or one.empty:
            return NOT_FOUND
        wants_open = query.get("state", "open") == "open"
        rows = [pull for pull in one.pulls if pull.is_open == wants_open]
        rows = [pull for pull in rows if pull.updated_at >= _since(query)]
        if query.get("sort") == "recentupdate":
            rows.sort(key=lambda pull: (-pull.updated_at, -pull.number))
        return self.page(rows, query, form)

    def _issues(self, one: Repository, _: Token, query: Query, __: str) -> Said:
        if query["type"] == "pulls":
            return self._of_pulls(one, query, state.pull_as_issue)
        if not one.has_issues or one.external_tracker:
            return NOT_FOUND
        wants_open = query.get("state", "open") == "open"
        rows = [issue for issue in one.issues if (issue.closed_at is None) == wants_open]
        rows = [issue for issue in rows if issue.updated_at >= _since(query)]
        return self.page(rows, query, state.issue)

    def _languages(self, one: Repository, _: Token, __: Query, ___: str) -> Said:
        return Said(200, one.languages) if one.has_code else _NO_CODE

    def _collaborators(self, one: Repository, token: Token, query: Query, __: str) -> Said:
        if token.permission == "read":
            return _NO_WRITE
        return self.page(one.collaborators, query, state.user)

    def _branch(self, one: Repository, token: Token, _: Query, wanted: str) -> Said:
        if not one.has_code:
            return _NO_CODE
        if one.empty or wanted != one.branch:
            return NOT_FOUND
        rule = one.rule or {}
        body = {
            "name": one.branch,
            "commit": {"id": one.commit, "message": "A change"},
            "protected": one.rule is not None,
            "required_approvals": rule.get("required_approvals", 0),
            "enable_status_check": rule.get("enable_status_check", False),
            "effective_branch_protection_name": (
                rule.get("rule_name", "") if token.permission == "admin" else ""
            ),
        }
        return Said(200, body)

    def _rules(self, one: Repository, token: Token, _: Query, __: str) -> Said:
        if token.permission != "admin":
            return _NO_ADMIN
        return Said(200, [*one.other_rules, *([one.rule] if one.rule else [])])

    def _tree(self, one: Repository, _: Token, query: Query, wanted: str) -> Said:
        if not one.has_code:
            return _NO_CODE
        if wanted not in {one.commit, "HEAD", one.branch} or one.empty:
            return refusal(400, f"sha not found [{wanted}]")
        if "recursive" not in query:
            names = sorted({path.partition("/")[0:2] for path in one.files})
            found = [state.entry(name, "tree" if slash else "blob") for name, slash in names]
            return Said(200, {"tree": found, "truncated": False, "total_count": len(found)})
        folders = sorted({path.rpartition("/")[0] for path in one.files} - {""})
        entries = [state.entry(path, "tree") for path in folders]
        entries += [state.entry(path, "blob") for path in one.files]
        entries += [state.entry(path, "commit") for path in one.submodules]
        size = min(int(query.get("per_page", self.most_entries)), self.most_entries)
        end = int(query.get("page", 1)) * size
        page = {"sha": wanted, "page": end // size, "total_count": len(entries)}
        more = end < len(entries)
        return Said(200, page | {"tree": entries[end - size : end], "truncated": more})

    def _file(self, one: Repository, _: Token, query: Query, wanted: str) -> Said:
        if not one.has_code:
            return _NO_CODE
        if query.get("ref", one.branch) not in {one.branch, one.commit}:
            return NOT_FOUND
        return Said(200, one.texts.get(wanted, b"")) if wanted in one.files else NOT_FOUND

    def _contents(self, one: Repository, token: Token, query: Query, wanted: str) -> Said:
        """A file as JSON."""
        said = self._file(one, token, query, wanted)
        if said.status != 200:
            return said
        content = base64.b64encode(said.body).decode()
        return Said(200, {"type": "file", "size": len(said.body), "content": content})


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()}"'


def _since(query: Query) -> float:
    found = datetime.fromisoformat(query.get("since", "1970-01-01T00:00:00Z"))
    return found.timestamp() * SECOND
