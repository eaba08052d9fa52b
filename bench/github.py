"""A process with the fake GitHub of the tests: `python -m bench.github PORT REPOSITORIES`.

Every answer takes the latency, its making included. GraphQL is executed once for each repository
when the process starts; answers are put together from those parts, because executing them anew
would take longer. Bodies are compressed as GitHub's are, entries of trees as long, and both are
made once: what is measured is who asks.

`GET /counts` says what it was asked since `POST /reset`, which makes all rate limits whole again
and may change the latency: `?latency=0.5`. `POST /commit?every=N` moves the HEAD of every N-th
repository.
"""

import asyncio
import gzip
import random
import re
import sys
import time
from collections import Counter
from typing import Any, Final

import msgspec
import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import DAY, HOUR, iso, now
from factbook.integrations.code_host import MONTH
from factbook.integrations.github import api
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.rest import Said
from tests.fakes.github.state import Issue, Pull, Repository, Token

LATENCY: Final = 0.05
OWNER: Final = "acme"
CREDENTIALS: Final = 20

_SINCE = re.compile(rb'"since":"[^"]*"')
_PROBES = {"protection", "alerts"}
_PAGE = re.compile(r"\{ \.\.\. on Repository \{ page: (\w+)\(")
_KINDS = {"pullRequests": api.PULLS, "issues": api.ISSUES}
_FOLDERS = ("src/main", "src/shared/models", "tests/unit", "docs", "deploy/charts/templates")
_SUFFIXES = ("py", "ts", "md", "yaml", "json", "txt")


class Counts(msgspec.Struct, frozen=True):
    """What was asked: `most` of any one tree and any one probe; `late` took longer to make."""

    graphql: int
    tree: int
    probes: int
    most_trees: int
    most_probes: int
    late: int
    sent: int


def name_of(number: int) -> str:
    """The name of a repository."""
    return f"repository-{number:04d}"


def token_of(number: int) -> str:
    """The token of a credential."""
    return f"token-{number}"


class GitHub(FakeGitHub):
    """The fake with answers that are ready, and a little more to count."""

    def __init__(self, repositories: list[Repository]) -> None:
        super().__init__(repositories, [Token(token_of(i)) for i in range(CREDENTIALS)])
        self._names = {one.name: one for one in repositories}
        self._ids = {one.id: one for one in repositories}
        self._since = iso(now() - MONTH)
        self._parts: dict[tuple[str, str, str], msgspec.Raw] = {}
        self._bodies: dict[bytes, bytes] = {}
        self._latency = LATENCY
        self._paths: Counter[tuple[str, str]] = Counter()
        self._late = self._bytes = 0
        self.reset()

    def prepare(self) -> None:
        """Execute what will be asked of every repository."""
        for one in self.repositories:
            self._repository(one.name)
            merged = sum(pull.merged_at is not None for pull in one.pulls)
            for cursor in range(100, merged, 100):
                self._page(api.PULLS, one.id, str(cursor))

    def reset(self) -> None:
        """Count from nothing, with all limits whole."""
        self.requests.clear()
        self.asked.clear()
        self._paths.clear()
        self._late = self._bytes = 0
        for token in self.tokens.values():
            token.used = dict.fromkeys(token.used, 0)
            token.reset_at = now() + HOUR

    def commit(self, every: int) -> int:
        """Move the HEAD of every so many repositories; their number."""
        moved = self.repositories[::every]
        for one in moved:
            one.commits += 1
            del self._parts["batch", one.name, ""]
            self._repository(one.name)
        self._bodies.clear()
        return len(moved)

    def counts(self) -> Counts:
        """What was asked since the last reset."""
        probes = {path: n for (kind, path), n in self._paths.items() if kind in _PROBES}
        trees = {path: n for (kind, path), n in self._paths.items() if kind == "tree"}
        return Counts(
            self.requests["graphql"],
            self.requests["tree"],
            sum(probes.values()),
            max(trees.values(), default=0),
            max(probes.values(), default=0),
            self._late,
            self._bytes,
        )

    def find(self, name: str) -> Repository | None:
        return self._names.get(name)

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        if path in {"/counts", "/reset", "/commit"}:
            return self._control(path, request)
        began = time.perf_counter()
        kind = self.kind(request)
        self._paths[kind, path] += 1
        response = await self._made(request, kind, path)
        self._bytes += len(response.body)
        left = self._latency - (time.perf_counter() - began)
        self._late += left < 0
        await asyncio.sleep(max(0.0, left))
        return response

    async def _made(self, request: Request, kind: str, path: str) -> Response:
        """The answer, made when it is asked for the first time; only its headers differ then."""
        if kind not in {"graphql", "tree"}:
            return await super().answer(request)
        key = await request.body() if kind == "graphql" else path.encode()
        if kind == "graphql":
            key = _SINCE.sub(b"", key)
        if key not in self._bodies:
            response = await super().answer(request)
            assert response.status_code == 200, response.body
            self._bodies[key] = gzip.compress(bytes(response.body), 1)
        token, resource = self._token(request), "graphql" if kind == "graphql" else "core"
        assert token
        token.used[resource] += 1
        headers = {"content-encoding": "gzip", **self._limits(token, resource)}
        return Response(self._bodies[key], 200, headers, "application/json; charset=utf-8")

    def _control(self, path: str, request: Request) -> Response:
        if path == "/reset":
            self._latency = float(request.query_params.get("latency", LATENCY))
            self.reset()
        if path == "/commit":
            self.commit(int(request.query_params["every"]))
        return Response(msgspec.json.encode(self.counts()))

    def _executed(self, asked: dict[str, Any], token: Token) -> dict[str, Any]:
        variables = asked["variables"]
        if "query Batch" in asked["query"]:
            count = sum(name.startswith("n") for name in variables)
            names = [f"{variables[f'o{i}']}/{variables[f'n{i}']}" for i in range(count)]
            data: dict[str, Any] = {f"r{i}": self._repository(n) for i, n in enumerate(names)}
        else:
            kinds = [_KINDS[field] for field in _PAGE.findall(asked["query"])]
            data = {
                f"p{i}": self._page(kind, variables[f"i{i}"], variables[f"c{i}"])
                for i, kind in enumerate(kinds)
            }
        left = token.limits["graphql"] - token.used["graphql"]
        limit = {"cost": 1, "remaining": left, "resetAt": iso(token.reset_at), "nodeCount": 0}
        return {"data": data | {"rateLimit": limit}}

    def _repository(self, name: str) -> msgspec.Raw:
        variables = api.make_batch_variables([name], self._since)
        return self._part(("batch", name, ""), api.build_batch_query(1), variables, "r0")

    def _page(self, kind: str, id_: str, cursor: str) -> msgspec.Raw:
        page = api.GithubPageRequest(kind, id_, cursor)
        variables = api.make_pages_variables([page], [], self._since)
        return self._part(
            (kind, id_, cursor), api.build_pages_query((kind,), False), variables, "p0"
        )

    def _part(
        self, key: tuple[str, str, str], query: str, variables: dict[str, Any], alias: str
    ) -> msgspec.Raw:
        if key not in self._parts:
            token = self.tokens[token_of(0)]
            answer = super()._executed({"query": query, "variables": variables}, token)
            assert "errors" not in answer, answer
            self._parts[key] = msgspec.Raw(msgspec.json.encode(answer["data"][alias]))
        return self._parts[key]

    def _said(self, request: Request, token: Token, path: str) -> Said:
        if "/git/trees/" not in path:
            return super()._said(request, token, path)
        said = super()._said(request, token, path)
        url = f"https://api.github.com{path.rpartition('/')[0]}".replace("trees", "blobs")
        for entry in said.body["tree"]:
            entry |= {"size": 1234, "url": f"{url}/{entry['sha']}"}
        return said

    def _by_id(self) -> dict[str, Repository]:
        return self._ids


def repositories(count: int, seed: int = 1) -> list[Repository]:
    """Made-up repositories: 25 % with two pages of pull requests, 5 % with three."""
    chance = random.Random(seed)
    moment = now()
    return [_repository(number, chance, moment) for number in range(count)]


def _repository(number: int, chance: random.Random, moment: int) -> Repository:
    pages = {0: 3, **dict.fromkeys(range(1, 6), 2)}.get(number % 20, 1)
    merged = chance.randrange(100 * pages - 90, 100 * pages - 10)
    issues = [
        Issue(i, moment - i * DAY if i % 3 else None, moment - i * DAY)
        for i in range(chance.randrange(80))
    ]
    return Repository(
        f"{OWNER}/{name_of(number)}",
        pulls=_pulls(merged, chance, moment, hours=6 - pages),
        issues=issues,
        languages=chance.sample(("Python", "Go", "TypeScript", "Shell", "HCL", "Java"), 3),
        collaborators=[f"person-{chance.randrange(400)}" for _ in range(chance.randrange(2, 40))],
        files=_files(chance),
        classic={"requiredApprovingReviewCount": 1} if number % 2 else None,
        codeowners_errors=0,
        alerts={"OPEN": number % 5, "FIXED": number % 5},
    )


def _pulls(merged: int, chance: random.Random, moment: int, *, hours: int) -> list[Pull]:
    """Pull requests, of which some were spoken of again later, so that a page is not enough."""
    pulls = []
    for i in range(merged):
        at = moment - i * hours * HOUR
        updated = at + chance.randrange(HOUR) if i % 10 else min(at + 4 * DAY, moment)
        author, is_bot = ("renovate", True) if i % 5 == 0 else (f"person-{i % 30}", False)
        title = f"Change {i} of what customers see when they pay for something"
        pulls.append(Pull(i, title, at - chance.randrange(DAY), at, updated, author, is_bot))
    return pulls + [Pull(merged + i, is_open=True) for i in range(chance.randrange(10))]


def _files(chance: random.Random) -> list[str]:
    """Around 200 files."""
    count = min(round(chance.lognormvariate(5.0, 0.8)), 2_000)
    return ["catalog-info.yaml", ".github/CODEOWNERS"] + [
        f"{chance.choice(_FOLDERS)}/module_{i}.{chance.choice(_SUFFIXES)}" for i in range(count)
    ]


def main(port: str, count: str) -> None:
    github = GitHub(repositories(int(count)))
    github.prepare()
    uvicorn.run(github, port=int(port), lifespan="off", log_level="warning", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
