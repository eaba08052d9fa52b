"""A check whose pattern an older release took, and this one doesn't."""

import msgspec

from factbook.checks.results.evaluator import StateSweep
from factbook.clock import MINUTE
from factbook.storage import Transaction
from tests.api.checking import RESULTS, check, evaluated, put
from tests.conftest import StartService
from tests.service import component

NAMED = {"source": "entity", "fact": "metadata.name", "operator": "matches"}


async def test_a_check_with_such_a_pattern_is_unknown_and_says_what_to_write(
    start: StartService,
) -> None:
    service = await start()
    assert (await service.push("shop", component("web"))).status_code == 200
    await put(service, check("old", rule={**NAMED, "value": "^w"}), publish=True)
    await evaluated(service)
    document = check("old", rule={**NAMED, "value": "^(?!test-)"})

    def work(transaction: Transaction) -> None:
        text = msgspec.json.encode(document).decode()
        transaction.run("UPDATE checks SET published = ? WHERE id = 'old'", (text,))

    await service.state.database.write(work)
    # What was remembered of another check is forgotten.
    await put(service, check("other", rule={**NAMED, "value": "^w"}), publish=True)
    await evaluated(service)
    sweep = StateSweep(service.state.database, service.state.clock)
    await sweep.tick()
    service.time.now += MINUTE
    await sweep.finish()

    answer = await service.http.get(f"{RESULTS}/old/component:default/web")
    result = answer.json()
    [seen] = result["because"]
    assert result["state"] == "unknown"
    assert seen["reason"].startswith("check-error: the pattern ^(?!test-) has (?!…), which looks")
    assert "write a second condition, under `not`" in seen["reason"]
    refused = await put(service, document)
    assert refused.status_code == 400
    assert "rule.value" in refused.text
