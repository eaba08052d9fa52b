"""The use of tokens: calls of tools and the size of their results, by token."""

from typing import Any

import pytest

from factbook import worker
from factbook.auth import tokens
from factbook.clock import DAY
from tests.api.messages import message, tool_call
from tests.service import TOOLS, Service, component, started

TOKENS = "/api/access/v1/tokens"
ALL = "/mcp"
LISTING = message("tools/call", tool_call("get-data-source-discovery", {"limit": 1}))
REFUSED = message("tools/call", tool_call("get-entity-facts", {"name": "payments"}))


async def usage_of(service: Service, name: str) -> dict[str, Any]:
    listed = (await service.http.get(TOKENS)).json()["tokens"]
    [found] = [token["usage"] for token in listed if token["name"] == name]
    usage: dict[str, Any] = found
    return usage


async def stored_calls(service: Service, name: str) -> int:
    listed = (await service.http.get(TOKENS)).json()["tokens"]
    ids = [token["id"] for token in listed if token["name"] == name]
    found = await tokens.sum_token_usage(service.state.database, ids, 0)
    return sum(one.calls for one in found.values())


@pytest.mark.spec("token.usage-is-shown")
async def test_calls_of_tools_and_the_size_of_their_results_are_counted_by_token(
    service: Service,
) -> None:
    await service.push("all", component("payments"))
    async with service.client(await service.token(name="agent")) as agent:
        answer = await agent.post(TOOLS, json=LISTING)
        text = answer.json()["result"]["content"][0]["text"]
        assert await usage_of(service, "agent") == {
            "calls": 1,
            "characters": len(text),
            "estimatedTokens": len(text) // 4,
        }
        compact = await agent.post(f"{ALL}?read=compact", json=LISTING)
        assert compact.json()["result"]["content"][0]["text"] == text
        refusal = (await agent.post(TOOLS, json=REFUSED)).json()["result"]["content"][0]["text"]
        # Neither is a call of a tool.
        await agent.post(ALL, json=message("tools/list"))
        await agent.post(ALL, json=message("ping"))
    found = await usage_of(service, "agent")
    assert found["calls"] == 3
    assert found["characters"] == pytest.approx(2 * len(text) + len(refusal), abs=20)
    assert await usage_of(service, "test") == {"calls": 0, "characters": 0, "estimatedTokens": 0}


@pytest.mark.spec("token.usage-is-shown")
async def test_a_token_that_was_just_made_has_no_use(service: Service) -> None:
    made = (await service.http.post(TOKENS, json={"name": "new"})).json()
    assert made["usage"] == {"calls": 0, "characters": 0, "estimatedTokens": 0}


async def test_no_call_waits_for_a_write_and_none_is_lost_at_a_stop(service: Service) -> None:
    async with started(service.state.settings) as other:
        token = await other.token(name="agent")
        async with other.client(token) as agent:
            for _ in range(3):
                await agent.post(TOOLS, json=LISTING)
        assert (await usage_of(other, "agent"))["calls"] == 3
        assert await stored_calls(other, "agent") == 0
    assert (await usage_of(service, "agent"))["calls"] == 3
    assert await stored_calls(service, "agent") == 3


@pytest.mark.both_databases
async def test_processes_add_to_the_same_counts(service: Service) -> None:
    token = await service.token(name="agent")
    async with started(service.state.settings) as other:
        for each in (service, other):
            async with each.client(token) as agent:
                await agent.post(ALL, json=LISTING)
                await agent.post(ALL, json=LISTING)
            await each.state.usage.write()
        assert (await usage_of(other, "agent"))["calls"] == 4
    assert (await usage_of(service, "agent"))["calls"] == 4


async def test_thirty_days_are_shown_and_ninety_kept(service: Service) -> None:
    async with service.client(await service.token(name="agent")) as agent:
        await agent.post(TOOLS, json=LISTING)
        service.time.advance(29 * DAY)
        await agent.post(TOOLS, json=LISTING)
        assert (await usage_of(service, "agent"))["calls"] == 2
        service.time.advance(DAY)
        assert (await usage_of(service, "agent"))["calls"] == 1
    await service.state.usage.write()
    assert (await usage_of(service, "agent"))["calls"] == 1
    state = service.state
    for days, kept in ((59, 2), (3, 1)):
        service.time.advance(days * DAY)
        await worker.sweep(state.database, state.settings, (), service.time())
        assert await stored_calls(service, "agent") == kept
