"""One endpoint for every revision: which era a request is of, and what differs between them.

What the database holds makes no difference here, so there is one of SQLite alone.
"""

import base64
import json
from typing import Any

import pytest

from factbook import __version__
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from tests.api.messages import (
    LEGACY,
    META,
    MODERN,
    expect_error,
    expect_result,
    message,
    metadata,
    modern_headers,
    modern_message,
    send,
    send_modern,
    tool_call,
)
from tests.conftest import StartService
from tests.service import NOON, TOOLS, Service, component
from tests.storage.evaluating import evaluating

SERVER = {"name": "factbook", "title": "Factbook", "version": __version__}
DISCOVERY = tool_call("get-data-source-discovery")
CUSTOM = DataSource(id="coverage", title="Coverage", schema=(Fact("lines", "integer"),))


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here is the protocol."""
    return sqlite_url


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(sources=[CUSTOM])


def is_modern(answer: dict[str, Any]) -> bool:
    """Whether a result carries what only modern ones do, all of it."""
    marks = {"resultType": "complete", "_meta": {f"{META}serverInfo": SERVER}}
    found = {key: answer[key] for key in marks if key in answer}
    assert found in ({}, marks)
    return bool(found)


# Legacy


@pytest.mark.spec("endpoint.legacy-revisions", "endpoint.revisions-kept-while-spoken")
async def test_a_legacy_client_shakes_hands_lists_and_calls(
    service: Service, subtests: pytest.Subtests
) -> None:
    for version in LEGACY:
        with subtests.test(version=version):
            asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a"}}
            hello = expect_result(await send(service, message("initialize", asked, id=0)), id=0)
            assert hello["protocolVersion"] == version
            assert hello["capabilities"] == {"tools": {}}
            assert hello["serverInfo"] == SERVER
            assert "get-data-source-discovery" in hello["instructions"]
            headers = {} if version == "2025-03-26" else {"mcp-protocol-version": version}
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await send(service, note, headers)).status_code == 202
            assert expect_result(await send(service, message("ping"), headers)) == {}
            listed = expect_result(await send(service, message("tools/list"), headers))
            assert listed.keys() == {"tools"}
            called = expect_result(await send(service, message("tools/call", DISCOVERY), headers))
            assert called.keys() == {"content", "structuredContent", "isError"}


async def test_a_handshake_for_a_revision_without_one_offers_the_newest_that_has_one(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[object] = ["2024-11-05", "2026-07-28", "2099-01-01", 7, None]
    for version in cases:
        with subtests.test(version=version):
            hello = expect_result(
                await send(service, message("initialize", {"protocolVersion": version}))
            )
            assert hello["protocolVersion"] == "2025-11-25"


@pytest.mark.spec("endpoint.bare-call", "endpoint.stateless", "endpoint.empty-arguments")
@pytest.mark.parametrize("params", [DISCOVERY, {"name": DISCOVERY["name"]}], ids=["{}", "none"])
async def test_a_lone_call_works_and_no_session_is_ever_made(service: Service, params: Any) -> None:
    answer = await send(service, message("tools/call", params))
    assert expect_result(answer)["isError"] is False
    hello = await send(service, message("initialize", {"protocolVersion": LEGACY[0]}))
    for headers in (answer.headers, hello.headers):
        assert "mcp-session-id" not in headers
    stale = {"mcp-session-id": "of another server", "last-event-id": "7"}
    assert expect_result(
        await send(service, message("tools/call", params), stale)
    ) == expect_result(answer)


@pytest.mark.spec("endpoint.path", "endpoint.request-headers", "endpoint.tools-call")
async def test_the_call_that_the_seed_shows_is_answered(service: Service) -> None:
    await service.push("first", component("payments"))
    answer = await service.http.post(
        "/api/mcp/v1/tech-insights-facts",
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
        content=json.dumps(
            {
                "jsonrpc": "2.0",
                "method": "tools/call",
                "params": {"name": "get-entity-compliance", "arguments": {"name": "payments"}},
                "id": 1,
            }
        ),
    )
    assert expect_result(answer)["structuredContent"]["metadata"]["hasOwner"] is True


@pytest.mark.spec("endpoint.integer-ids", "endpoint.json-rpc-2")
async def test_an_id_is_echoed_as_it_is(service: Service, subtests: pytest.Subtests) -> None:
    cases: list[object] = [0, 1, -1, 2**53, 2**63, 2**70, "", "a", 'ä"\\\n']
    for id in cases:
        with subtests.test(id=id):
            expect_result(await send(service, message("tools/call", DISCOVERY, id)), id)
            expect_error(await send(service, message("nothing", id=id)), 200, -32601, id)


# Modern


@pytest.mark.spec("endpoint.modern-revision")
async def test_a_modern_client_discovers_lists_and_calls(service: Service) -> None:
    found = expect_result(await send_modern(service, "server/discover"))
    assert is_modern(found)
    assert found["supportedVersions"] == [MODERN, *reversed(LEGACY)]
    assert found["capabilities"] == {"tools": {}}
    assert "get-data-source-discovery" in found["instructions"]
    listed = expect_result(await send_modern(service, "tools/list"))
    for cacheable in (found, listed):
        assert (cacheable["ttlMs"], cacheable["cacheScope"]) == (300_000, "public")
    assert is_modern(listed)
    called = expect_result(await send_modern(service, "tools/call", DISCOVERY))
    assert is_modern(called)
    refused = tool_call("get-entity-compliance", {"name": "nobody"})
    assert is_modern(expect_result(await send_modern(service, "tools/call", refused)))


@pytest.mark.spec("endpoint.modern-revision", "endpoint.one-path-for-all-revisions")
async def test_both_eras_answer_the_same_beside_the_modern_fields(service: Service) -> None:
    for method, params in (("tools/list", None), ("tools/call", DISCOVERY)):
        old = expect_result(await send(service, message(method, params)))
        new = expect_result(await send_modern(service, method, params))
        for field in ("resultType", "_meta", "ttlMs", "cacheScope"):
            new.pop(field, None)
        assert new == old


NAME = DISCOVERY["name"]
SENTINEL = f"=?base64?{base64.b64encode(NAME.encode()).decode()}?="
MISMATCHES: dict[str, dict[str, str | None]] = {
    "another revision": {"mcp-protocol-version": "2025-11-25"},
    "no revision": {"mcp-protocol-version": None},
    "another method": {"mcp-method": "tools/list"},
    "the method in another case": {"mcp-method": "Tools/Call"},
    "no method": {"mcp-method": None},
    "another name": {"mcp-name": "get-entity-facts"},
    "no name": {"mcp-name": None},
    "the name in Base64 that is none": {"mcp-name": "=?base64?!!!?="},
    "another name in Base64": {"mcp-name": "=?base64?YQ==?="},
}


@pytest.mark.spec("protocol.header-mismatch-is-400")
async def test_a_modern_header_that_is_not_what_the_body_says_is_400(
    service: Service, subtests: pytest.Subtests
) -> None:
    for label, changed in MISMATCHES.items():
        with subtests.test(label):
            given = modern_headers("tools/call", NAME) | changed
            headers = {name: value for name, value in given.items() if value is not None}
            answer = await send(service, modern_message("tools/call", DISCOVERY), headers)
            assert next(iter(changed)) in expect_error(answer, 400, -32020, 1)


async def test_a_header_may_come_in_base64_and_with_blanks_around_it(
    service: Service, subtests: pytest.Subtests
) -> None:
    for name in [SENTINEL, f"  {NAME}\t", f" {SENTINEL} "]:
        with subtests.test(name=name):
            expect_result(await send_modern(service, "tools/call", DISCOVERY, mcp_name=name))


async def test_a_tool_is_found_under_its_name_with_underscores_too(service: Service) -> None:
    params = tool_call("get_data_source_discovery")
    expected = expect_result(await send(service, message("tools/call", DISCOVERY)))
    assert expect_result(await send(service, message("tools/call", params))) == expected
    assert is_modern(expect_result(await send_modern(service, "tools/call", params)))


# Which era it is

REVISION = "mcp-protocol-version"
ERAS: dict[str, tuple[dict[str, str], dict[str, Any], bool]] = {
    "nothing": ({}, {}, False),
    "a legacy header": ({REVISION: "2025-06-18"}, {}, False),
    "a legacy header with blanks": ({REVISION: " 2025-06-18 "}, {}, False),
    "legacy metadata": ({}, {"_meta": metadata("2025-11-25")}, False),
    "both legacy": ({REVISION: "2025-11-25"}, {"_meta": metadata("2025-11-25")}, False),
    "metadata of something else": ({}, {"_meta": {f"{META}related-task": {"a": 1}}}, False),
    "both modern": (modern_headers("tools/list"), {"_meta": metadata()}, True),
}


@pytest.mark.spec("endpoint.one-path-for-all-revisions")
async def test_header_and_metadata_decide_the_era(
    service: Service, subtests: pytest.Subtests
) -> None:
    for name, (headers, params, modern) in ERAS.items():
        with subtests.test(name):
            listed = expect_result(await send(service, message("tools/list", params), headers))
            assert is_modern(listed) is modern


@pytest.mark.spec("endpoint.one-path-for-all-revisions")
async def test_an_argument_that_looks_like_metadata_decides_nothing(service: Service) -> None:
    params = tool_call("get-entity-compliance", {"name": f"{META}protocolVersion"})
    assert expect_result(await send(service, message("tools/call", params)))["isError"] is True


@pytest.mark.spec("protocol.header-mismatch-is-400")
async def test_modern_metadata_without_modern_headers_is_never_served_as_legacy(
    service: Service,
) -> None:
    expect_error(await send(service, modern_message("tools/list")), 400, -32020, 1)
    old = {REVISION: "2025-11-25"}
    expect_error(await send(service, modern_message("tools/list"), old), 400, -32020, 1)
    mixed = message("tools/list", {"_meta": metadata("2025-11-25")})
    expect_error(await send(service, mixed, modern_headers("tools/list")), 400, -32020, 1)


# A fault of ours


@pytest.mark.spec("protocol.bug-is-32603")
async def test_a_fault_of_ours_is_told_without_detail(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    await service.push("first", component("payments"))
    database = service.state.database
    await database.write(
        evaluating(lambda tx: store.record_facts(tx, CUSTOM, [Observation(1, {"lines": 7})], NOON))
    )
    broken = "UPDATE facts_latest SET facts = 'spoilt'"
    assert await database.write(lambda tx: tx.run(broken)) == 1
    params = tool_call("get-all-entities-facts", {"dataSourceId": "coverage", "facts": ["lines"]})
    told = {
        expect_error(await send(service, message("tools/call", params)), 200, -32603, 1),
        expect_error(await send_modern(service, "tools/call", params), 500, -32603, 1),
    }
    assert told == {"The service encountered an unexpected error."}
    assert "tool.failed" in capsys.readouterr().out
    assert (await service.http.post(TOOLS, json=message("ping"))).status_code == 200
