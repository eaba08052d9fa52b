"""GitLab: the code-host shape, protection of the default branch, and the files of a project."""

from functools import partial
from typing import Final

from factbook.integrations.gitlab.client import BATCH, collect_gitlab, read_gitlab_file
from factbook.integrations.gitlab.options import GITLAB, SLUG, GitlabOptions, find_gitlab_target
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Instance,
    Integration,
    Probe,
    make_vendor,
    split_targets,
)
from factbook.outbound.git import make_git_headers

_FEW: Final = {"membership": "true", "simple": "true", "per_page": 1}


def _make_gitlab_integration(instance: Instance[GitlabOptions]) -> Integration:
    options = instance.options
    own = () if options.host == GITLAB else (options.slug,)
    return Integration(
        source=instance.source(
            f"Merge requests, issues, protection and files on {options.host}.",
            (SLUG, SOURCE_LOCATION, *own),
        ),
        authorize=instance.credential({"authorization": f"Bearer {options.token}"}),
        base_url=options.origin,
        further={options.git: instance.credential(make_git_headers("oauth2", options.token))},
        calls_at_once=6,
        target=partial(find_gitlab_target, options),
        batches=partial(split_targets, size=BATCH),
        collect=partial(collect_gitlab, options),
        read=partial(read_gitlab_file, options),
        probes=(Probe(right="read_api", target=f"{options.rest}/projects", query=_FEW),),
    )


INTEGRATION: Final = make_vendor(
    "gitlab",
    "GitLab",
    GitlabOptions,
    _make_gitlab_integration,
    ("codehost", "security.branchProtection", "repository"),
)
