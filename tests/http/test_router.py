"""Requests reach the application of their path, with its parameters."""

from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from factbook.http.pipeline import make_router

PATHS = (
    "/sets",
    "/sets/{id}",
    "/sets/{id}/revisions",
    "/sets/{id:path}",
    "/entities/by-ref/{ref:path}",
    "/entities/{uid}",
    "/entities/mine",
    "/lists/{set_id}",
    "/lists/{set_id}/revisions/{number}",
)


async def test_a_path_reaches_its_application(subtests: pytest.Subtests) -> None:
    reached: list[tuple[str, Any]] = []

    def application(name: str) -> ASGIApp:
        async def reach(scope: Scope, _receive: Receive, _send: Send) -> None:
            reached.append((name, scope.get("path_params", {})))

        return reach

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    dispatch = make_router({path: application(path) for path in PATHS}, application("nowhere"))
    cases: list[tuple[str, str, dict[str, str]]] = [
        ("/sets", "/sets", {}),
        ("/entities/mine", "/entities/mine", {}),
        ("/entities/my", "/entities/{uid}", {"uid": "my"}),
        ("/sets/a b", "/sets/{id}", {"id": "a b"}),
        ("/sets/a/revisions", "/sets/{id}/revisions", {"id": "a"}),
        ("/sets/a/b/c", "/sets/{id:path}", {"id": "a/b/c"}),
        ("/sets/", "/sets/{id:path}", {"id": ""}),
        ("/entities/by-ref/group:a/b", "/entities/by-ref/{ref:path}", {"ref": "group:a/b"}),
        ("/entities/a\n", "/entities/{uid}", {"uid": "a\n"}),
        ("/entities/", "nowhere", {}),
        ("/entities/a/b", "nowhere", {}),
        ("/lists/import/a/b", "/lists/{set_id}", {"set_id": "import/a/b"}),
        (
            "/lists/import/revisions/1",
            "/lists/{set_id}/revisions/{number}",
            {"set_id": "import", "number": "1"},
        ),
        (
            "/lists/import/a/b/revisions/1",
            "/lists/{set_id}/revisions/{number}",
            {"set_id": "import/a/b", "number": "1"},
        ),
        ("/Sets", "nowhere", {}),
        ("", "nowhere", {}),
    ]
    for path, route, parameters in cases:
        with subtests.test(path=path):
            reached.clear()
            await dispatch({"type": "http", "path": path}, nothing, nothing)
            assert reached == [(route, parameters)]
