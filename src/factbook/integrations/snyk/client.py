"""Collection from a Snyk instance, which reads each organization once for all entities."""

from collections.abc import Sequence

from factbook.integrations.integration import Collected, Probe, each
from factbook.integrations.snyk import facts, organizations, pages, targets
from factbook.integrations.snyk.options import SnykOptions
from factbook.integrations.snyk.organizations import Organization
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import Missing, Outcome


async def collect(
    options: SnykOptions, wanted: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target, or the reason that there are none."""
    selectors = {text: targets.read(text) for text in wanted}
    named = {id_ for selector in selectors.values() for id_ in selector.organizations}
    # The settings may have changed since the targets were determined.
    wanted_ids = [id_ for id_ in options.ids if id_ in named]
    found = await each(wanted_ids, lambda id_: _organization(options, id_, client, memory, now))
    return {text: facts.collected(selector, found) for text, selector in selectors.items()}


async def _organization(
    options: SnykOptions, id_: str, client: HttpClient, memory: Memory, now: int
) -> Organization | Missing:
    """The organization; one that was too large is not read again for days."""
    what = f"{id_} exact" if options.exact else id_
    if await exceeds_noted_limit(memory, what, pages.MOST_ROWS, now):
        return pages.TOO_LARGE
    found = await organizations.read(client, options, id_)
    if isinstance(found, Missing) and found.outcome is Outcome.TOO_LARGE:
        await note_exceeded_limit(memory, what, pages.MOST_ROWS, now)
    return found


def probes(options: SnykOptions) -> tuple[Probe, ...]:
    """Probes for the permission to list each organization, and its issues if they are counted."""
    listings = ("projects", "issues") if options.exact else ("projects",)
    return tuple(
        Probe(
            right=f"View {listing} of the organization {id_}",
            target=build_path("orgs", id_, listing),
            query={"version": options.version, "limit": 10},
            headers=pages.HEADERS,
        )
        for id_ in options.ids
        for listing in listings
    )
