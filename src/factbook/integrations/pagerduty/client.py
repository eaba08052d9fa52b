"""Collection from one account: all services in one batch, whatever their number."""

from collections.abc import Sequence
from typing import Final

from factbook.integrations.integration import Collected
from factbook.integrations.pagerduty import analytics, facts, incidents, services
from factbook.integrations.pagerduty.analytics import IncidentFigures
from factbook.integrations.pagerduty.answers import BAD_KEY, HEADERS
from factbook.integrations.probes import Probe
from factbook.outbound import HttpClient, Memory
from factbook.outbound.outcomes import Missing, Outcome

# After these nothing more is asked.
_FINAL: Final = (services.NOT_FOUND, BAD_KEY)
PROBES: Final = (
    Probe(
        right="reading services",
        target="/services",
        facts=("incident.serviceInfo",),
        query={"limit": 1, "sort_by": "name:asc"},
        headers=HEADERS,
        budget="rest",
    ),
    Probe(
        right="reading incidents",
        target="/incidents",
        facts=("incident.incidentMetrics",),
        query={"limit": 1},
        headers=HEADERS,
        budget="rest",
    ),
)
_REFUSED: Final = frozenset({Outcome.DENIED, Outcome.FEATURE_OFF})


async def collect(
    targets: Sequence[str], client: HttpClient, _: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (the id of a service) at this time, or why there are none."""
    found = await services.of(client, targets)
    refused = {target: one for target, one in found.items() if one in _FINAL}
    asked = [target for target in found if target not in refused]
    figures = await _figures(client, asked, now) if asked else {}
    return {
        target: facts.collected(one, refused.get(target) or figures[target])
        for target, one in found.items()
    }


async def _figures(
    client: HttpClient, targets: Sequence[str], now: int
) -> dict[str, IncidentFigures | Missing]:
    """The incidents of each, by analytics or, where the key may not read it, one by one."""
    windows = await analytics.windows(client, targets, now)
    if not isinstance(windows, Missing):
        return {target: analytics.figures(windows, target) for target in targets}
    if windows == BAD_KEY or windows.outcome not in _REFUSED:
        return dict.fromkeys(targets, windows)
    known = await incidents.of(client, targets, now)
    if isinstance(known, Missing):
        return dict.fromkeys(targets, known)
    return {one: incidents.figures(known.get(one, ()), now, windows) for one in targets}
