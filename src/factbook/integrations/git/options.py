"""Settings of a Git host, and the repository there that an entity's location names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import unquote

import msgspec

from factbook.integrations.integration import (
    InstanceOptions,
    find_location,
    report_bad_annotation,
    report_no_annotation,
)
from factbook.outbound.git import Limits
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import HOST_PATTERN, about

LONGEST: Final = 500

# A part of a path with which hosts go on behind a repository, and how many parts stand before it
# at least: a group may well be called `src`.
_AFTER: Final = {"-": 1, "tree": 1, "blob": 1, "src": 2}

_SECRET: Final = re.compile(r"[\x21-\x7e]*")
# A batch of the collector, which is one repository, ends after five minutes.
_MOST_SECONDS: Final = 240
_MOST: Final = {"seconds": _MOST_SECONDS, "megabytes": 10_000, "most_files": 1_000_000}


class GitOptions(InstanceOptions, frozen=True, kw_only=True):
    """Host of Git repositories, with one credential or none."""

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
    ] = msgspec.field(default_factory=list)
    seconds: Annotated[int, about("Longest time for one repository, at most 240.")] = 120
    megabytes: Annotated[int, about("Largest download of one repository, in MiB.")] = 100
    most_files: Annotated[int, about("Most files of one repository.")] = 200_000

    @property
    def url(self) -> str:
        """The address of the host, without a slash at its end."""
        return (self.base_url or f"https://{self.host}").rstrip("/")

    @property
    def limits(self) -> Limits:
        """The limits at which a repository is given up."""
        return Limits(self.seconds, self.megabytes, self.most_files)

    @property
    def prefixes(self) -> list[str]:
        """The path prefixes to read, without slashes at their ends."""
        return [path.strip("/") for path in self.paths]

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not HOST_PATTERN.fullmatch(self.host):
            yield "host has to be a host name in lower case, such as git.example.com"
        if not self.url.startswith(("https://", "http://")):
            yield "base_url has to begin with https://"
        if self.username and not self.token:
            yield "a username needs a token"
        if not _SECRET.fullmatch(self.username) or ":" in self.username:
            yield "username has a character that cannot be sent"
        if not _SECRET.fullmatch(self.token):
            yield "token has a character that cannot be sent"
        if not all(self.prefixes):
            yield "paths has an empty one"
        for name, most in _MOST.items():
            if not 1 <= getattr(self, name) <= most:
                yield f"{name} has to be from 1 to {most}"


def find_git_target(options: GitOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The path of the repository, decoded and without outer slashes, or the reason for no path."""
    place = find_location(entity)
    if place is None or place.host != options.host:
        return report_no_annotation(f"no repository on {options.host}")
    parts = cut_repository_path([unquote(part) for part in place.path.split("/")])
    found = "/".join(parts)
    if len(found) > LONGEST or not all(map(_is_segment_name, parts)):
        return report_bad_annotation("what it names is not a path of a repository")
    if options.prefixes and not any(f"{found}/".startswith(f"{one}/") for one in options.prefixes):
        return report_no_annotation("a path that is not configured")
    return found


def cut_repository_path(parts: Sequence[str]) -> Sequence[str]:
    """The repository's segments in the path of a web page: up to the first marker of their end.

    All segments if the path ends with `.git`, unless one is `-`, which cannot be a name.
    """
    if parts[-1].endswith(".git") and "-" not in parts:
        return parts
    for i, part in enumerate(parts):
        if part.endswith(".git"):
            return parts[: i + 1]
        if i >= _AFTER.get(part, len(parts)):
            return parts[:i]
    return parts


def _is_segment_name(part: str) -> bool:
    return part not in {"", ".", "..", "-"} and part.isprintable() and not {"/", "\\"} & set(part)
