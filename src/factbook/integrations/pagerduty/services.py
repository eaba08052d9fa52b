"""Services of an account: all of them page by page, or a few one by one."""

from collections.abc import Sequence
from typing import Any, Final

from factbook.integrations.pagerduty.answers import (
    BAD_KEY,
    BEYOND,
    Reference,
    Service,
    get,
    missing_of,
    pages,
)
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, read_as

# So many are asked for one by one rather than by a listing of unknown length.
FEW: Final = 5
# So many that a listing did not show are asked for one by one: it shifts while services come and
# go, and an account may have more services than can be listed.
MOST_ALONE: Final = 50
_MOST_FAILURES: Final = 2

NOT_FOUND: Final = Missing(Outcome.NOT_FOUND, "no service of this id in the account")
Services = dict[str, Service | Missing]


async def of(client: HttpClient, targets: Sequence[str]) -> Services:
    """Each target's service, or the reason for its absence."""
    listed, end = Services(), None
    if len(targets) > FEW:
        listed, end = await _listed(client)
    found = {target: listed[target] for target in targets if target in listed}
    if end not in {None, BEYOND}:
        return found | {target: end for target in targets if target not in found}
    return found | await _alone(client, [one for one in targets if one not in found], end)


async def _listed(client: HttpClient) -> tuple[Services, Missing | None]:
    """The services by id, and the reason that there are more of them, if there are.

    A listing ends after 10,000. One in the opposite order shows as many from the other end.
    """
    found = Services()
    for order in ("name:asc", "name:desc"):
        end: Missing | None = None
        async for page in pages(client, "services", [("sort_by", order)]):
            if isinstance(page, Missing):
                end = page
                break
            new = _read(page)
            if None in new:
                return found, UNUSABLE
            if order == "name:desc" and new.keys() <= found.keys():
                return found, None
            found |= {id_: one for id_, one in new.items() if id_ is not None}
        if end is not BEYOND:
            return found, end
    return found, BEYOND


def _read(page: list[Any]) -> dict[str | None, Service | Missing]:
    """The services of a page by id; None is the key of one whose id cannot be read."""
    found: dict[str | None, Service | Missing] = {}
    for item in page:
        named = read_as(item, Reference)
        found[None if isinstance(named, Missing) else named.id] = read_as(item, Service)
    return found


async def _alone(client: HttpClient, targets: Sequence[str], end: Missing | None) -> Services:
    """The services requested one by one, as far as their number allows."""
    found = Services()
    failures = 0
    for target in targets[:MOST_ALONE]:
        one = found[target] = await _one(client, target)
        if not isinstance(one, Missing):
            continue
        failures += one.outcome is Outcome.TRANSIENT
        if one.outcome is Outcome.RATE_LIMITED or one == BAD_KEY or failures == _MOST_FAILURES:
            return found | dict.fromkeys(targets[len(found) :], one)
    return found | dict.fromkeys(targets[MOST_ALONE:], end or NOT_FOUND)


async def _one(client: HttpClient, target: str) -> Service | Missing:
    answer = await get(client, build_path("services", target))
    if answer.outcome is Outcome.NOT_FOUND:
        return NOT_FOUND
    if not answer.ok:
        return missing_of(answer)
    data = answer.data if isinstance(answer.data, dict) else {}
    service = read_as(data.get("service"), Service)
    if isinstance(service, Service) and service.id != target:
        return UNUSABLE
    return service
