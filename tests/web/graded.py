"""An entity with checks and a scorecard, for the pages that show it."""

from typing import Any

from tests.api.checking import COVERED, SCORECARDS, check, evaluated, put, scorecard, with_source
from tests.api.defining import item, push
from tests.service import Service, component

FIX = "https://ci.example.com/{{ metadata.name }}"
CHECKED: tuple[dict[str, Any], ...] = (
    check(
        messages={"fail": "Only {{ facts.coverage['lines'] }} % of {{ metadata.name }} is tested."},
        fix={"link": FIX, "instructions": "Write tests."},
        appliesTo={"kind": "component"},
    ),
    check("much", title="Tests cover nearly all", rule={**COVERED, "value": 95}),
    check("owned", title="Has an owner",
          rule={"source": "entity", "fact": "spec.owner", "operator": "isKnown"}),
    check("tooled", title="Names its tool",
          rule={"source": "coverage", "fact": "tool", "operator": "in", "value": ["cov"]}),
)  # fmt: skip
CARD = scorecard(
    entries=[
        {"check": "owned", "level": "bronze"},
        {"check": "covered", "level": "silver"},
        {"check": "tooled", "level": "silver"},
        {"check": "much"},
    ],
    levels=[{"id": "bronze", "title": "Bronze"}, {"id": "silver", "title": "Silver"}],
)


async def with_checks(service: Service, *entities: dict[str, Any], **facts: Any) -> None:
    """Evaluate four checks and a scorecard for entities; `facts` are those of `component:web`."""
    await with_source(service)
    await service.push("shop", *(entities or (component("web"),)))
    if facts:
        await push(service, item("component:default/web", **facts))
    for document in CHECKED:
        answer = await put(service, document, publish=True)
        assert answer.is_success, answer.text
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=CARD)
    assert answer.is_success, answer.text
    await evaluated(service)
