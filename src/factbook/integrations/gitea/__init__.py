"""Gitea and Forgejo: the code-host shape, branch protection, and the files of a repository."""

from functools import partial
from typing import Final

from factbook.integrations.gitea.client import BATCH, collect_gitea, read_gitea_file
from factbook.integrations.gitea.options import GiteaOptions, find_gitea_target
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Instance,
    Integration,
    Probe,
    make_vendor,
    split_targets,
)
from factbook.outbound.git import make_git_headers


def _make_gitea_integration(instance: Instance[GiteaOptions]) -> Integration:
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
        target=partial(find_gitea_target, options),
        batches=partial(split_targets, size=BATCH),
        collect=partial(collect_gitea, options),
        read=partial(read_gitea_file, options),
        probes=(
            Probe(
                right="read:repository",
                target=f"{options.rest}/repos/search",
                query={"limit": 1},
            ),
        ),
    )


INTEGRATION: Final = make_vendor(
    "gitea",
    "Gitea or Forgejo",
    GiteaOptions,
    _make_gitea_integration,
    ("codehost", "security.branchProtection", "repository"),
)
