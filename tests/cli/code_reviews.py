"""Comments on a pull request of GitHub, or a merge request of GitLab: a fake of both."""

import json
from typing import Any

import httpx2

GITHUB = "https://api.github.test"
GITLAB = "https://gitlab.test/api/v4"
PULL = "/repos/acme/shop/issues/7/comments"
NOTES = "/api/v4/projects/42/merge_requests/7/notes"
TOKEN = "a-token-of-the-job"


class CodeReviews:
    """The comments, and what was asked; `refusal` is answered in place of everything."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.refusal: int | None = None
        self.broken = False

    def add(self, body: str, *, by_person: bool = True) -> None:
        """Add a comment of a person, or of the pipeline."""
        self.comments.append(
            {
                "id": len(self.comments) + 1,
                "body": body,
                "user": {"type": "User" if by_person else "Bot"},
                "author": {"id": 1 if by_person else 99},
            }
        )

    @property
    def writes(self) -> list[tuple[str, str]]:
        """What was asked beside reads."""
        return [one for one in self.asked if one[0] != "GET"]

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append((request.method, request.url.path))
        if self.broken:
            raise httpx2.ConnectError("refused")
        given = request.headers.get("authorization"), request.headers.get("private-token")
        if given not in ((f"Bearer {TOKEN}", None), (None, TOKEN)):
            return httpx2.Response(401, json={"message": "Bad credentials"})
        if self.refusal is not None:
            return httpx2.Response(self.refusal, json={"message": TOKEN})
        return self._answer(request)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        path, method = request.url.path, request.method
        if path == "/api/v4/user":
            return httpx2.Response(200, json={"id": 99})
        if method == "GET" and path in (PULL, NOTES):
            size, page = (int(request.url.params[name]) for name in ("per_page", "page"))
            return httpx2.Response(200, json=self.comments[size * (page - 1) : size * page])
        body = json.loads(request.content)["body"]
        if method == "POST" and path in (PULL, NOTES):
            self.add(body, by_person=False)
            return httpx2.Response(201, json=self.comments[-1])
        place, _, number = path.rpartition("/")
        assert (method, place) in {
            ("PATCH", "/repos/acme/shop/issues/comments"),
            ("PUT", NOTES),
        }
        self.comments[int(number) - 1]["body"] = body
        return httpx2.Response(200, json=self.comments[int(number) - 1])
