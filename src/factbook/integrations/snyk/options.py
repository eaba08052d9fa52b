"""Settings of a Snyk instance: the table `[integrations.snyk.<name>]`."""

import re
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from factbook.integrations.configuration import InstanceOptions
from factbook.settings.option_tables import about

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}(~(beta|experimental))?", re.ASCII)


class SnykOptions(InstanceOptions, frozen=True, kw_only=True):
    """Instance of Snyk with one credential, and the organizations that may be requested."""

    token: Annotated[str, about("Secret. The key of a service account, or an API token.")] = ""
    organizations: Annotated[
        list[str],
        about(
            "Ids of the organizations that may be asked, at least one. `name=id` also gives one "
            "the name that `snyk.io/org-name` calls it by."
        ),
    ] = msgspec.field(default_factory=list)
    base_url: Annotated[
        str,
        about(
            "Address of the REST interface. In other regions `https://api.eu.snyk.io/rest` or "
            "`https://api.au.snyk.io/rest`."
        ),
    ] = "https://api.snyk.io/rest"
    version: Annotated[str, about("Version of the interface to ask for, a date.")] = "2024-10-15"
    exact: Annotated[
        bool,
        about(
            "Count the issues that are open and not ignored one by one, rather than take the "
            "figures of each project's latest snapshot. Takes one call for 100 issues."
        ),
    ] = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the organizations, in lower case, each once."""
        return tuple(dict.fromkeys(_parts(entry)[1] for entry in self.organizations))

    @property
    def names(self) -> dict[str, str]:
        """The ids of organizations that have a name, by their name in lower case."""
        return {name: id_ for name, id_ in map(_parts, self.organizations) if name}

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not self.token:
            yield "a token is needed"
        if not self.ids:
            yield "organizations has to name at least one organization"
        elif not all(UUID.fullmatch(id_) for id_ in self.ids):
            yield "organizations has to be of ids, such as those in Snyk's settings"
        if not self.base_url.startswith(("https://", "http://")):
            yield "base_url has to begin with https://"
        if not _VERSION.fullmatch(self.version):
            yield "version has to be a date such as 2024-10-15"


def _parts(entry: str) -> tuple[str, str]:
    name, _, id_ = entry.lower().rpartition("=")
    return name.strip(), id_.strip()
