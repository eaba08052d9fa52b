"""Collection from a GitHub instance: a batch of repositories, from the first query to the facts."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from factbook.clock import SECOND
from factbook.integrations.github import facts, pages, probes, repositories, trees
from factbook.integrations.github.answers import RepositoryData
from factbook.integrations.github.graphql import GithubApi
from factbook.integrations.github.options import GithubOptions
from factbook.integrations.integration import Collected
from factbook.integrations.merge_times import MONTH
from factbook.outbound import HttpClient, Memory
from factbook.outbound.outcomes import Missing

# Three questions of twenty, and one for the further pages of all of them.
BATCH: Final = 3 * repositories.AT_ONCE


async def collect(
    options: GithubOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (`owner/name`) at this time, or why there are none."""
    api = GithubApi(client, options, memory, now)
    cutoff = now - MONTH
    since = datetime.fromtimestamp(cutoff // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    bots = not options.exclude_bots
    read = await repositories.read(api, targets, since)
    found = [one for one in read.values() if isinstance(one, RepositoryData)]
    bypassed = await pages.complete(api, found, since, cutoff, bots=bots)
    collected = {
        target: Collected(missing={"": one})
        for target, one in read.items()
        if isinstance(one, Missing)
    }
    async with asyncio.TaskGroup() as group:
        tasks = {
            target: group.create_task(_known(api, one, cutoff, bypassed, bots=bots))
            for target, one in read.items()
            if isinstance(one, RepositoryData)
        }
    for target, task in tasks.items():
        collected[target] = facts.collected(task.result())
    return collected


async def _known(
    api: GithubApi, found: RepositoryData, cutoff: int, bypassed: pages.Bypasses, *, bots: bool
) -> facts.GithubSnapshot:
    """The data of a repository, completed by the queries that only REST supports."""
    known = facts.GithubSnapshot(
        found, await trees.paths(api, found), cutoff, bypassed=bypassed, bots=bots
    )
    repository = found.repository
    if probes.needs_protection(found) and repository.default_branch_ref:
        branch = repository.default_branch_ref.name
        known.classic = await probes.classic_rule(api, repository, branch)
    if probes.needs_alerts(found):
        known.no_alerts = await probes.no_alerts(api, repository)
    return known
