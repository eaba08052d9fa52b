"""Settings of a Snyk instance: the table `[integrations.snyk.<name>]`."""

import re
from typing import Annotated, Final

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import about

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}(~(beta|experimental))?", re.ASCII)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One Snyk with one credential, and the organizations there that may be asked."""

    token: Annotated[str, about("Secret. The key of a service account, or an API token.")] = ""
    organizations: Annotated[
        list[str],
        about(
            "Ids of the organizations that may be asked, at least one. `name=id` also gives one "
            "the name that `snyk.io/org-name` calls it by."
        ),
    ] = []
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

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Options(base_url={self.base_url!r}, organizations={self.organizations!r})"

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the organizations, in lower case, each once."""
        return tuple(dict.fromkeys(_parts(entry)[1] for entry in self.organizations))

    @property
    def names(self) -> dict[str, str]:
        """The ids of those organizations that have a name, by it in lower case."""
        return {name: id_ for name, id_ in map(_parts, self.organizations) if name}


def _parts(entry: str) -> tuple[str, str]:
    name, _, id_ = entry.lower().rpartition("=")
    return name.strip(), id_.strip()


def _problems(options: Options) -> list[str]:
    problems = []
    if not options.token:
        problems.append("a token is needed")
    if not options.ids:
        problems.append("organizations has to name at least one organization")
    elif not all(UUID.fullmatch(id_) for id_ in options.ids):
        problems.append("organizations has to be of ids, such as those in Snyk's settings")
    if not options.base_url.startswith(("https://", "http://")):
        problems.append("base_url has to begin with https://")
    if not _VERSION.fullmatch(options.version):
        problems.append("version has to be a date such as 2024-10-15")
    return problems
