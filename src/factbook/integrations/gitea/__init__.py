"""Gitea and Forgejo: the code-host shape, branch protection, and the files of a repository."""

from functools import partial
from typing import Final

from factbook.integrations.configuration import Instance, vendor
from factbook.integrations.gitea.client import BATCH, collect, read
from factbook.integrations.gitea.options import GiteaOptions, target
from factbook.integrations.integration import Integration, Probe, portions
from factbook.integrations.locations import SOURCE_LOCATION
from factbook.outbound.git import make_git_headers


def _configured(instance: Instance[GiteaOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(
            f"Pull requests, issues, protection and files on {options.host}.",
            (options.slug, SOURCE_LOCATION),
        ),
        authorize=instance.credential({"authorization": f"token {options.token}"}),
        base_url=options.origin,
        further={
            options.git: instance.credential(make_git_headers(options.token, "x-oauth-basic")),
        },
        # There is no limit to read from answers, and many servers are small.
        calls_at_once=4,
        target=partial(target, options),
        batches=partial(portions, size=BATCH),
        collect=partial(collect, options),
        read=partial(read, options),
        probes=(
            Probe(
                right="read:repository",
                target=f"{options.rest}/repos/search",
                query={"limit": 1},
            ),
        ),
    )


INTEGRATION: Final = vendor(
    "gitea",
    "Gitea or Forgejo",
    GiteaOptions,
    _configured,
    ("codehost", "security.branchProtection", "repository"),
)
