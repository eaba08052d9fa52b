"""GitHub: the code-host shape, dependency alerts, and the files of a repository."""

from functools import partial
from typing import Final

from factbook.integrations.github.client import BATCH, collect_github, read_github_file
from factbook.integrations.github.options import (
    GITHUB,
    SLUG,
    Credentials,
    GithubOptions,
    find_github_target,
)
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Instance,
    Integration,
    Probe,
    make_vendor,
    split_targets,
)

# GitHub asks for no concurrency of heavy questions: those of GraphQL come one after another,
# because one batch is under way at a time. REST's are light.
_CALLS_AT_ONCE: Final = 6
# GitHub allows 900 points of REST in a minute, of which each of these calls takes one.
# Source: docs.github.com, "Rate limits for the REST API", about secondary rate limits.
_PACE: Final = {"core": 720}
# It costs one point of the limit, and every credential may ask it.
_QUESTION: Final = {"query": "{ rateLimit { remaining } }"}


def _make_github_integration(instance: Instance[GithubOptions]) -> Integration:
    options = instance.options
    own = () if options.host == GITHUB else (options.slug,)
    credentials = Credentials(instance.id, options, instance.clock)
    return Integration(
        source=instance.source(
            f"Pull requests, issues, protection, alerts and files on {options.host}.",
            (SLUG, SOURCE_LOCATION, *own),
            # Its limits are of an hour, after which a run goes on.
            minutes=120,
        ),
        authorize=credentials.interface,
        base_url=options.origin,
        further={options.git: credentials.git},
        calls_at_once=_CALLS_AT_ONCE,
        pace=_PACE,
        target=partial(find_github_target, options),
        batches=partial(split_targets, size=BATCH),
        collect=partial(collect_github, options),
        read=partial(read_github_file, options),
        probes=(Probe(right="a valid credential", target=options.graphql, json=_QUESTION),),
    )


INTEGRATION: Final = make_vendor(
    "github",
    "GitHub",
    GithubOptions,
    _make_github_integration,
    (
        "codehost",
        "security.dependencyAlerts",
        "security.branchProtection",
        "repository",
    ),
)
