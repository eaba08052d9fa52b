"""Settings of a Datadog organization, and the tags that an entity's annotations select there.

A target is the text of both lists of tags, of monitors and of objectives: `service:app service:app`
is equal for all entities with the same tags. Tags are compared in Datadog's normalised form.
"""

import re
from typing import Annotated, Final

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import about

# Source: Datadog's API description, version 1, and its list of sites.
SITES: Final = (
    "datadoghq.com",
    "us3.datadoghq.com",
    "us5.datadoghq.com",
    "ap1.datadoghq.com",
    "ap2.datadoghq.com",
    "uk1.datadoghq.com",
    "datadoghq.eu",
    "ddog-gov.com",
    "us2.ddog-gov.com",
)
_SITE: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII)
_ADDRESS: Final = re.compile(r"https?://[a-z0-9.:\[\]-]+(/[\w.~-]+)*/?", re.ASCII | re.IGNORECASE)
_KEY: Final = re.compile(r"[a-z][a-z0-9_./-]{0,99}", re.ASCII)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One organization of Datadog with one pair of keys."""

    site: Annotated[
        str,
        about("Site of the organization. One that is not Datadog's own needs `base_url`."),
    ] = "datadoghq.com"
    base_url: Annotated[str, about("Address of the interface. Empty: `https://api.<site>`.")] = ""
    api_key: Annotated[str, about("Secret. An API key.")] = ""
    application_key: Annotated[
        str, about("Secret. An application key with the rights `monitors_read` and `slos_read`.")
    ] = ""
    tag_key: Annotated[
        str, about("Key of the tag whose value `datadoghq.com/service-name` gives.")
    ] = "service"

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Options(site={self.site!r}, base_url={self.base_url!r})"

    @property
    def address(self) -> str:
        """The address of the interface, without a slash at its end."""
        return (self.base_url or f"https://api.{self.site}").rstrip("/")


def _problems(options: Options) -> list[str]:
    problems = []
    if not _SITE.fullmatch(options.site):
        problems.append("site has to be a host name in lower case, such as datadoghq.eu")
    elif options.site not in SITES and not options.base_url:
        problems.append(f"without base_url site has to be one of {', '.join(SITES)}")
    if options.base_url and not _ADDRESS.fullmatch(options.base_url):
        problems.append("base_url has to be like https://host/path")
    if not options.api_key or not options.application_key:
        problems.append("api_key and application_key are needed, both")
    if not _KEY.fullmatch(options.tag_key):
        problems.append("tag_key has to be a key in lower case, such as service")
    return problems
