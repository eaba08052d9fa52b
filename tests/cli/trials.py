"""A source that asks a connection, trials of sources, and what a server says of them."""

import json
from collections.abc import Callable
from typing import Any

from typer.testing import Result

from tests.cli.bridge import write

WEB = "/api/catalog/entities/by-name/component/default/web"
BUILD = {"result": "success", "seconds": 12.5, "branch": "main"}
REQUEST = {
    "method": "GET",
    "path": "/jobs/web/last",
    "headers": {"x-team": "hunter2"},
    "body": None,
}


def builds(**config: Any) -> dict[str, Any]:
    """A source that asks a connection."""
    return {
        "id": "builds",
        "title": "Builds",
        "handlerDefinition": {
            "type": "http",
            "config": {
                "id": "builds",
                "connection": "ci",
                "path": "/jobs/{{ metadata.name }}/last",
                "headers": {"x-team": "hunter2"},
                **config,
            },
        },
        "schema": {
            "passed": {"type": "boolean", "extract": {"jmespath": "result == 'success'"}},
            "duration": {"type": "float", "extract": {"jmespath": "seconds"}},
            "coverage": {"type": "float", "extract": {"jmespath": "coverage"}},
        },
    }


def answer(body: str, **more: Any) -> dict[str, Any]:
    """What the server says it was answered."""
    return {
        "status": 200,
        "contentType": "application/json",
        "body": body,
        "truncated": False,
    } | more


def trial(body: str = json.dumps(BUILD), **more: Any) -> dict[str, Any]:
    """What the server says of a trial of `builds`."""
    return {
        "request": REQUEST,
        "answer": answer(body),
        "facts": {"passed": True, "duration": 12.5},
        "reasons": {"coverage": "not-applicable: the document has no such value"},
    } | more


def tried(
    factbook: Callable[..., Result], *more: str, document: dict[str, Any] | None = None
) -> Result:
    """`factbook sources test` of a file with this source, or `builds`, on the component web."""
    file = write("builds.yaml", document or builds())
    return factbook("sources", "test", file, "--entity", "web", *more)
