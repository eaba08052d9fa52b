"""The client of the community's Tech Insights plugin reads checks, results, facts and schemas."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.checking import CHECKS, RESULTS, check
from tests.api.defining import FACTS, SOURCES, item, pushed
from tests.contracts import node
from tests.processes import serving
from tests.service import PUSH, component
from tests.waiting import until

pytestmark = pytest.mark.system

NAMES = ("web", "api", "old")


def entity(name: str) -> dict[str, str]:
    return {"kind": "component", "namespace": "default", "name": name}


def fill(http: httpx2.Client) -> None:
    """Define a source and a check, push facts of two of three entities, and wait for results."""
    items = [component(name) for name in NAMES]
    calls = (
        http.put(f"{PUSH}/sets/shop", json={"items": items}),
        http.put(f"{SOURCES}/coverage", json=pushed()),
        http.post(f"{SOURCES}/coverage/publish"),
        http.post(
            f"{FACTS}/coverage",
            json={"items": [item(lines=90), item("component:default/api", lines=10)]},
        ),
        http.put(f"{CHECKS}/covered?publish=true", json=check(description="Tests matter.")),
    )
    for answer in calls:
        assert answer.status_code == 200, answer.text
    until(lambda: http.get(f"{RESULTS}/covered").json()["total"] == len(NAMES))


def test_the_plugins_client_is_answered_as_by_its_own_backend(
    database_url: str, tmp_path: Path
) -> None:
    calls: list[list[Any]] = [
        ["getAllChecks"],
        ["runChecks", entity("web")],
        ["runChecks", entity("api"), ["covered"]],
        ["runBulkChecks", [entity(name) for name in NAMES], [{"id": "covered"}]],
        ["getFacts", entity("web"), ["coverage", "none"]],
        ["getFactSchemas"],
        ["runChecks", entity("nobody")],
    ]
    with serving(database_url, tmp_path) as server:
        token = server.token()
        with server.client(token) as http:
            fill(http)
        asked = node.ask("tech-insights-client.mjs", server.url, token, question=calls)
    *answers, refused = asked
    checks, web, api, many, facts, schemas = (one["value"] for one in answers)
    assert [(one["id"], one["factIds"]) for one in checks] == [("covered", ["coverage"])]
    assert [(one["result"], one["facts"]["lines"]["value"]) for one in web] == [(True, 90)]
    assert [one["result"] for one in api] == [False]
    results = {one["entity"]: [each["result"] for each in one["results"]] for one in many}
    assert results == {
        "component:default/web": [True],
        "component:default/api": [False],
        "component:default/old": [None],
    }
    assert facts["coverage"]["facts"] == {"lines": 90}
    assert {"lines", "tool"} in [one.keys() for one in schemas]
    assert (refused["error"]["name"], refused["error"]["status"]) == ("ResponseError", 404)
