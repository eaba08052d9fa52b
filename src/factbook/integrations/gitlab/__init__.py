"""GitLab: the code-host shape, protection of the default branch, and the files of a project."""

from functools import partial
from typing import Final

from factbook.integrations.configuration import Instance, vendor
from factbook.integrations.gitlab.client import BATCH, collect, read
from factbook.integrations.gitlab.options import GITLAB, SLUG, GitlabOptions, target
from factbook.integrations.integration import Integration, Probe, portions
from factbook.integrations.locations import SOURCE_LOCATION
from factbook.outbound.git import make_git_headers

_FEW: Final = {"membership": "true", "simple": "true", "per_page": 1}


def _configured(instance: Instance[GitlabOptions]) -> Integration:
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
        target=partial(target, options),
        batches=partial(portions, size=BATCH),
        collect=partial(collect, options),
        read=partial(read, options),
        probes=(Probe(right="read_api", target=f"{options.rest}/projects", query=_FEW),),
    )


INTEGRATION: Final = vendor(
    "gitlab",
    "GitLab",
    GitlabOptions,
    _configured,
    ("codehost", "security.branchProtection", "repository"),
)
