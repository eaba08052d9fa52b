"""Collection from a Snyk instance, which reads each organization once for all entities."""

import asyncio
from collections.abc import Sequence

from factbook.integrations.integration import Collected
from factbook.integrations.probes import Probe
from factbook.integrations.snyk import facts, organizations, pages, targets
from factbook.integrations.snyk.options import Options
from factbook.outbound import HttpClient, Memory, path


async def collect(
    options: Options, wanted: Sequence[str], client: HttpClient, _: Memory, __: int
) -> dict[str, Collected]:
    """The facts about each target, or why there are none."""
    selectors = {text: targets.read(text) for text in wanted}
    named = {id_ for selector in selectors.values() for id_ in selector.organizations}
    async with asyncio.TaskGroup() as group:
        # The settings may have changed since the targets were determined.
        tasks = {
            id_: group.create_task(organizations.read(client, options, id_))
            for id_ in options.ids
            if id_ in named
        }
    found = {id_: task.result() for id_, task in tasks.items()}
    return {text: facts.collected(selector, found) for text, selector in selectors.items()}


def probes(options: Options) -> tuple[Probe, ...]:
    """Whether each organization may be listed, and its issues where they are counted."""
    listings = ("projects", "issues") if options.exact else ("projects",)
    return tuple(
        Probe(
            right=f"View {listing} of the organization {id_}",
            target=path("orgs", id_, listing),
            query={"version": options.version, "limit": 10},
            headers=pages.HEADERS,
        )
        for id_ in options.ids
        for listing in listings
    )
