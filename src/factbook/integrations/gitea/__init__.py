"""Gitea and Forgejo: the code-host shape, branch protection, and the files of a repository."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import CODEHOST, REPOSITORY, SECURITY
from factbook.integrations.gitea.client import BATCH, collect
from factbook.integrations.gitea.contents import read
from factbook.integrations.gitea.options import Options
from factbook.integrations.gitea.targets import target
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.locations import SOURCE_LOCATION
from factbook.integrations.probes import Probe
from factbook.outbound import Credential, HttpClient
from factbook.settings import option_tables as configuring

ID: Final = "gitea"
TITLE: Final = "Gitea or Forgejo"
FILLS: Final = ("codehost", "security.branchProtection", "repository")
FACTS: Final[tuple[Fact, ...]] = (
    *facts_of(CODEHOST),
    *facts_of(SECURITY, "branchProtection"),
    *facts_of(REPOSITORY),
)
# There is no limit to read from answers, and many servers are small.
_CALLS_AT_ONCE: Final = 4


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.gitea.<name>]` of the settings describes.

    The one named `default` is the source `gitea`, another one `gitea-<name>`. Raises
    ConfigurationError for what is wrong with the table. `clock` is not looked at.
    """
    options = configuring.read(ID, name, values, Options)
    id_ = configuring.source_id(ID, name)
    return Integration(
        source=_source(id_, configuring.title(TITLE, name), options),
        fills=FILLS,
        credential=id_,
        authorize=partial(_credential, id_, options),
        base_url=options.origin,
        calls_at_once=_CALLS_AT_ONCE,
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


def _credential(name: str, options: Options, _: HttpClient) -> Credential:
    return Credential.fixed(name, {"authorization": f"token {options.token}"})


def _source(id_: str, title: str, options: Options) -> DataSource:
    keys = (options.slug, SOURCE_LOCATION)
    return source_of(
        ID,
        id_,
        title,
        f"Pull requests, issues, protection and files on {options.host}.",
        keys,
        FACTS,
    )


INTEGRATION: Final = Vendor(
    id=ID, title=TITLE, options=Options, facts=FACTS, fills=FILLS, configured=configured
)
