from typing import Any

import pytest

from factbook.checks.state import FAIL, PASS, UNKNOWN
from tests.checks.making import check, entity, evaluated

DOCUMENT = {
    "kind": "Component",
    "metadata": {
        "name": "shop",
        "annotations": {"github.com/project-slug": "acme/shop", "a": {"b.c": 1}},
        "tags": ["java", "web"],
        "links": [{"url": "https://one.example"}, {"title": "two"}],
    },
    "spec": {"lifecycle": "production", "a.b": {"c": 1}, "a": {"d": 2}, "empty": None},
    "relations": [
        {"type": "ownedBy", "targetRef": "group:default/web"},
        {"type": "dependsOn", "targetRef": "resource:default/db"},
    ],
}


def test_the_document_of_an_entity_is_read_by_dotted_path(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str, Any, int]] = [
        ("kind", "equal", "Component", PASS),
        ("spec.lifecycle", "equal", "experimental", FAIL),
        ("spec.Lifecycle", "equal", "production", PASS),
        ("metadata.annotations.github.com/project-slug", "startsWith", "acme/", PASS),
        ("metadata.annotations.backstage.io/techdocs-ref", "startsWith", "dir:", UNKNOWN),
        ("metadata.annotations.backstage.io/techdocs-ref", "isKnown", None, FAIL),
        ("metadata.namespace", "equal", "default", PASS),
        ("Metadata.Namespace", "equal", "default", PASS),
        ("metadata.tags", "containsAll", ["java"], PASS),
        ("metadata.links.url", "contains", "https://one.example", PASS),
        ("metadata.links.url", "doesNotContain", "https://one.example", FAIL),
        ("metadata.links.url", "doesNotContain", "https://two.example", UNKNOWN),
        ("metadata.links.url", "sizeAtMost", 1, UNKNOWN),
        ("metadata.links.url", "isNotEmpty", None, PASS),
        ("metadata.links", "sizeAtLeast", 2, PASS),
        ("relations.ownedBy", "contains", "group:default/web", PASS),
        ("relations.partOf", "isKnown", None, FAIL),
        ("spec.a.b.c", "equal", 1, PASS),
        ("spec.a.d", "equal", 2, PASS),
        ("spec.empty", "isUnknown", None, PASS),
        ("spec.lifecycle.more", "isUnknown", None, PASS),
        ("spec", "isNotEmpty", None, PASS),
        ("spec.lifecycle", "lessThan", 3, UNKNOWN),
    ]
    for path, operator, value, state in cases:
        with subtests.test(path=path, operator=operator, value=value):
            given = {} if value is None else {"value": value}
            one = check({"source": "entity", "fact": path, "operator": operator, **given})

            assert evaluated(one, entity(document=DOCUMENT)).state == state
