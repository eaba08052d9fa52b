"""GitLab: the code-host shape, protection of the default branch, and the files of a project."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import CODEHOST, REPOSITORY, SECURITY
from factbook.integrations.gitlab.client import BATCH, collect
from factbook.integrations.gitlab.contents import read
from factbook.integrations.gitlab.options import GITLAB, Options
from factbook.integrations.gitlab.targets import SLUG, target
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.locations import SOURCE_LOCATION
from factbook.integrations.probes import Probe
from factbook.outbound import Credential, HttpClient
from factbook.settings import option_tables as configuring

ID: Final = "gitlab"
FILLS: Final = ("codehost", "security.branchProtection", "repository")
FACTS: Final[tuple[Fact, ...]] = (
    *facts_of(CODEHOST),
    *facts_of(SECURITY, "branchProtection"),
    *facts_of(REPOSITORY),
)
_CALLS_AT_ONCE: Final = 6
_FEW: Final = {"membership": "true", "simple": "true", "per_page": 1}


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.gitlab.<name>]` of the settings describes.

    The one named `default` is the source `gitlab`, another one `gitlab-<name>`. Raises
    ConfigurationError for what is wrong with the table.
    """
    del clock  # A token says nothing about its end.
    options = configuring.read(ID, name, values, Options)
    id_ = configuring.source_id(ID, name)
    return Integration(
        source=_source(id_, configuring.title("GitLab", name), options),
        fills=FILLS,
        credential=id_,
        authorize=partial(_credential, id_, options),
        base_url=options.origin,
        calls_at_once=_CALLS_AT_ONCE,
        target=partial(target, options),
        batches=partial(portions, size=BATCH),
        collect=partial(collect, options),
        read=partial(read, options),
        probes=(Probe(right="read_api", target=f"{options.rest}/projects", query=_FEW),),
    )


def _credential(name: str, options: Options, _: HttpClient) -> Credential:
    return Credential.fixed(name, {"authorization": f"Bearer {options.token}"})


def _source(id_: str, title: str, options: Options) -> DataSource:
    keys = [SLUG, SOURCE_LOCATION]
    if options.host != GITLAB:
        keys.append(options.slug)
    return source_of(
        ID,
        id_,
        title,
        f"Merge requests, issues, protection and files on {options.host}.",
        keys,
        FACTS,
    )


INTEGRATION: Final = Vendor(
    id=ID, title="GitLab", options=Options, facts=FACTS, fills=FILLS, configured=configured
)
