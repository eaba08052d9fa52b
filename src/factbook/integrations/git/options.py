"""Settings of a Git host, and the repository there that an entity's location names."""

import re
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import HOST, about

MIB: Final = 1024 * 1024
_SECRET: Final = re.compile(r"[\x21-\x7e]*")
# A batch of the collector, which is one repository, ends after five minutes.
_MOST_SECONDS: Final = 240
_MOST: Final = {"seconds": _MOST_SECONDS, "megabytes": 10_000, "most_files": 1_000_000}


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One host of repositories, with one credential or none."""

    host: Annotated[
        str, about("Needed. Host that annotations name, with its port: `git.example.com`.")
    ]
    base_url: Annotated[
        str, about("Address that paths of repositories are put behind. Empty: `https://<host>`.")
    ] = ""
    username: Annotated[
        str, about("Name that goes with the token. Empty: `git`, which most hosts accept.")
    ] = ""
    token: Annotated[
        str, about("Secret. A token or password. Empty: only public repositories are read.")
    ] = ""
    paths: Annotated[
        list[str],
        about("Beginnings of paths to read, in whole parts: `acme`, `acme/apps`. Empty: all."),
    ] = []
    seconds: Annotated[int, about("Longest time for one repository, at most 240.")] = 120
    megabytes: Annotated[int, about("Largest download of one repository, in MiB.")] = 100
    most_files: Annotated[int, about("Most files of one repository.")] = 200_000

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Options(host={self.host!r}, base_url={self.base_url!r})"

    @property
    def url(self) -> str:
        """The address of the host, without a slash at its end."""
        return (self.base_url or f"https://{self.host}").rstrip("/")

    @property
    def prefixes(self) -> list[str]:
        """The beginnings of paths, without outer slashes."""
        return [path.strip("/") for path in self.paths]


def _problems(options: Options) -> Iterator[str]:
    if not HOST.fullmatch(options.host):
        yield "host has to be a host name in lower case, such as git.example.com"
    if not options.url.startswith(("https://", "http://")):
        yield "base_url has to begin with https://"
    if options.username and not options.token:
        yield "a username needs a token"
    if not _SECRET.fullmatch(options.username) or ":" in options.username:
        yield "username has a character that cannot be sent"
    if not _SECRET.fullmatch(options.token):
        yield "token has a character that cannot be sent"
    if not all(options.prefixes):
        yield "paths has an empty one"
    for name, most in _MOST.items():
        if not 1 <= getattr(options, name) <= most:
            yield f"{name} has to be from 1 to {most}"
