"""Git: the files of a repository on any host, by a clone without contents."""

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import REPOSITORY
from factbook.integrations.git.client import collect
from factbook.integrations.git.contents import read
from factbook.integrations.git.options import Options
from factbook.integrations.git.targets import target
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.locations import SOURCE_LOCATION
from factbook.outbound import ANONYMOUS, Credential, HttpClient
from factbook.outbound.git import program
from factbook.settings import option_tables as configuring

ID: Final = "git"
FILLS: Final = ("repository",)
FACTS: Final[tuple[Fact, ...]] = facts_of(REPOSITORY)
_AT_ONCE: Final = 4


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.git.<name>]` of the settings describes.

    The one named `default` is the source `git`, another one `git-<name>`. Raises ConfigurationError
    for what is wrong with the table, and where Git itself is missing. The clock is not asked.
    """
    options = configuring.read(ID, name, values, Options)
    id_ = configuring.source_id(ID, name)
    git = program.find()
    return Integration(
        source=_source(id_, configuring.title("Git", name), options),
        fills=FILLS,
        credential=id_,
        authorize=partial(_credential, id_, options),
        base_url=options.url,
        at_once=_AT_ONCE,
        target=partial(target, options),
        # One that takes long keeps no other back.
        batches=partial(portions, size=1),
        collect=partial(collect, git, options),
        read=partial(read, git, options),
    )


def _credential(name: str, options: Options, _client: HttpClient) -> Credential:
    if not options.token:
        return ANONYMOUS
    pair = base64.b64encode(f"{options.username or 'git'}:{options.token}".encode()).decode()
    return Credential.fixed(name, {"authorization": f"Basic {pair}"})


def _source(id_: str, title: str, options: Options) -> DataSource:
    return source_of(
        ID,
        id_,
        title,
        f"Files of the repositories on {options.host}.",
        (SOURCE_LOCATION,),
        FACTS,
        minutes=60,
    )


INTEGRATION: Final = Vendor(
    id=ID, title="Git", options=Options, facts=FACTS, fills=FILLS, configured=configured
)
