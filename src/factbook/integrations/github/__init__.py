"""GitHub: the code-host shape, dependency alerts, and the files of a repository."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import CODEHOST, REPOSITORY, SECURITY
from factbook.integrations.github.client import BATCH, collect
from factbook.integrations.github.contents import read
from factbook.integrations.github.credentials import credential
from factbook.integrations.github.options import GITHUB, GithubOptions
from factbook.integrations.github.targets import SLUG, target
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.locations import SOURCE_LOCATION
from factbook.integrations.probes import Probe
from factbook.settings import option_tables as configuring

ID: Final = "github"
FILLS: Final = (
    "codehost",
    "security.dependencyAlerts",
    "security.branchProtection",
    "repository",
)
FACTS: Final[tuple[Fact, ...]] = (
    *facts_of(CODEHOST),
    *facts_of(SECURITY, "dependencyAlerts", "branchProtection"),
    *facts_of(REPOSITORY),
)
# GitHub asks for no concurrency of heavy questions: those of GraphQL come one after another,
# because one batch is under way at a time. REST's are light.
_CALLS_AT_ONCE: Final = 6
# It costs one point of the limit, and every credential may ask it.
_QUESTION: Final = {"query": "{ rateLimit { remaining } }"}


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.github.<name>]` of the settings describes.

    The one named `default` is the source `github`, another one `github-<name>`. Raises
    ConfigurationError for what is wrong with the table.
    """
    options = configuring.read(ID, name, values, GithubOptions)
    id_ = configuring.source_id(ID, name)
    return Integration(
        source=_source(id_, configuring.title("GitHub", name), options),
        fills=FILLS,
        credential=id_,
        authorize=partial(credential, id_, options, clock),
        base_url=options.origin,
        calls_at_once=_CALLS_AT_ONCE,
        target=partial(target, options),
        batches=partial(portions, size=BATCH),
        collect=partial(collect, options),
        read=partial(read, options),
        probes=(Probe(right="a valid credential", target=options.graphql, json=_QUESTION),),
    )


def _source(id_: str, title: str, options: GithubOptions) -> DataSource:
    keys = [SLUG, SOURCE_LOCATION]
    if options.host != GITHUB:
        keys.append(options.slug)
    return source_of(
        ID,
        id_,
        title,
        f"Pull requests, issues, protection, alerts and files on {options.host}.",
        keys,
        FACTS,
    )


INTEGRATION: Final = Vendor(
    id=ID, title="GitHub", options=GithubOptions, facts=FACTS, fills=FILLS, configured=configured
)
