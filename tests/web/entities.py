"""An entity that says all there is to say."""

from typing import Any

from tests.service import component

WEB = "/catalog/component/default/web"
REF = "component:default/web"


def whole(**spec: Any) -> dict[str, Any]:
    """A component that says all there is to say."""
    item = component("web", **spec)
    item["metadata"] |= {
        "title": "The shop",
        "description": "What customers see.",
        "tags": ["go"],
        "labels": {"acme.example/tier": "1"},
        "annotations": {
            "acme.example/board": "https://board.acme.example/web",
            "acme.example/run": "javascript:alert(1)",
        },
        "links": [
            {"url": "https://runbooks.acme.example/web", "title": "Runbook"},
            {"url": "javascript:alert(1)", "title": "A trap"},
            {"url": "mailto:team@acme.example"},
        ],
    }
    return item
