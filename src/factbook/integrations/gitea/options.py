"""Settings of a Gitea or Forgejo instance, and the repository there that annotations name."""

from typing import Annotated

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import HOST, about, origin


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One instance of Gitea or Forgejo with one token."""

    host: Annotated[
        str, about("Needed. Host that people and annotations name, with its port if it has one.")
    ] = ""
    api_url: Annotated[str, about("Address of the interface. Empty: `https://<host>/api/v1`.")] = ""
    token: Annotated[str, about("Secret. Needed. An access token.")] = ""
    organizations: Annotated[
        list[str], about("Owners to ask for. Empty: every owner that annotations name.")
    ] = []

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Options(host={self.host!r}, api_url={self.api_url!r})"

    @property
    def rest(self) -> str:
        """The address of the interface, without a slash at its end."""
        return (self.api_url or f"https://{self.host}/api/v1").rstrip("/")

    @property
    def origin(self) -> str:
        """Scheme and host of the interface."""
        return origin(self.rest)

    @property
    def slug(self) -> str:
        """The annotation of this host; the name of an annotation has no port."""
        return f"{self.host.partition(':')[0]}/project-slug"


def _problems(options: Options) -> list[str]:
    problems = []
    if not options.host:
        problems.append("a host is needed")
    elif not HOST.fullmatch(options.host):
        problems.append("host has to be a host name in lower case, such as git.example.com")
    if not options.rest.startswith(("https://", "http://")):
        problems.append("api_url has to begin with https://")
    if not options.token:
        problems.append("a token is needed")
    return problems
