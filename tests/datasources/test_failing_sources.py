"""Each way in which a source can fail: no fact is ever unknown without a reason that fits."""

from collections.abc import Mapping

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import DAY, MINUTE
from tests.datasources.asking import BUILD, Api, collecting, definition
from tests.fakes import faults
from tests.fakes.faults import Answer, Fault, saying
from tests.service import Service, component

FACTS = {"ok": ("boolean", "ok"), "steps": ("integer", "abs(steps)")}
GOOD = {"ok": True, "steps": 3}


def answering(body: str, type_: str = "application/json") -> Fault:
    async def fault(_: Request, __: Answer) -> Response:
        return Response(body, headers={"content-type": type_})

    return fault


async def hanging_up(_: Request, __: Answer) -> Response:
    raise httpx2.ConnectError("refused")


LIMIT = {"message": "API rate limit exceeded"}
SPENT = {"x-ratelimit-remaining": "0", "x-ratelimit-limit": "60", "retry-after": "3600"}
LOGIN = {"location": "https://login.example.com/"}
NO_STEPS = "not-applicable: the document has no such value"
UNFIT = "bad-definition: schema.steps.extract: the expression does not fit the document"
ERRORS = "upstream-error: the answer has errors instead of the value"

WAYS: Mapping[str, tuple[Fault, dict[str, str]]] = {
    "a wrong credential": (saying({}, 401), {"": "forbidden: ci.test: answered 401"}),
    "no right": (saying({}, 403), {"": "forbidden: ci.test: answered 403"}),
    "not there": (saying({}, 404), {"": "not-found: ci.test: answered 404"}),
    "gone": (saying({}, 410), {"": "not-found: ci.test: answered 410"}),
    "too many requests": (saying({}, 429, {"retry-after": "7200"}), {"": "rate-limited: "}),
    "a limit as 403": (saying(LIMIT, 403, SPENT), {"": "rate-limited: "}),
    "for legal reasons": (saying({}, 451), {"": "upstream-error: ci.test: answered 451"}),
    "an error": (saying({}, 500), {"": "upstream-error: ci.test: answered 500"}),
    "a proxy": (faults.bad_gateway, {"": "upstream-error: ci.test: answered 502"}),
    "maintenance": (faults.unavailable, {"": "upstream-error: ci.test: answered 503"}),
    "no connection": (hanging_up, {"": "upstream-error: ci.test"}),
    "a redirect": (saying({}, 302, LOGIN), {"": "upstream-error: ci.test: answered 302"}),
    "a sign-in page": (answering("<html>", "text/html"), {"": "upstream-error: "}),
    "a body cut off": (faults.cut_off, {"": "upstream-error: "}),
    "an empty body": (answering(""), {"": "upstream-error: "}),
    "too large a body": (answering("[" + "1," * 5_000_000 + "1]"), {"": "upstream-error: "}),
    "too deep a body": (answering("[" * 5_000), {"": "upstream-error: "}),
    "errors of GraphQL": (saying({"data": None, "errors": [{}]}), {"": ERRORS}),
    "an error with 200": (saying({"error": "down"}), {"ok": ERRORS, "steps": UNFIT}),
    "another form": (saying([1]), {"ok": NO_STEPS, "steps": UNFIT}),
    "null": (saying({"ok": None, "steps": 3}), {"ok": NO_STEPS}),
    "another type": (
        saying({"ok": "yes", "steps": 3}),
        {"ok": "bad-definition: schema.ok.type: expected a boolean, not this string"},
    ),
}


@pytest.mark.slow
async def test_each_way_to_fail_is_shown_with_a_reason_that_fits(
    service: Service, subtests: pytest.Subtests
) -> None:
    for number, (way, (fault, expected)) in enumerate(WAYS.items()):
        with subtests.test(way):
            # Limits of the case before are over.
            service.time.advance(DAY)
            api, id_ = Api(), f"way-{number}"
            api.answers["/api/x"] = GOOD
            world = collecting(service, api, definition(id_=id_, path="/x", facts=FACTS))
            api.fail("/api/x", fault, times=99)
            await world.run(component("web"))
            for _ in range(5):
                service.time.advance(5 * MINUTE)
                await world.collector.drain()
            found = await world.latest("web", id_)
            assert found.reasons.keys() == expected.keys()
            for place, reason in expected.items():
                assert found.reasons[place].startswith(reason), found.reasons
            run = await world.last(id_)
            if "" in expected:
                assert run.state == "failed"
                assert (run.error or "").startswith(expected[""]), run


async def test_an_entity_without_the_annotation_says_which_it_lacks(service: Service) -> None:
    world = collecting(service, Api(), definition(path=f"/jobs/{BUILD}", facts=FACTS))
    await world.run(component("web"))
    [reason] = (await world.latest("web")).reasons.values()
    assert reason.startswith("no-annotation: ")
