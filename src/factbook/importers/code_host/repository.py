"""Repositories as any code host lists them, and the place that they are imported from."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.outbound.outcomes import Missing

Content = bytes | Missing

_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


def namespace(name: str, *, several: bool) -> str:
    """The namespace of an organization or group: its name, if it is one of several."""
    if not several:
        return DEFAULT_NAMESPACE
    return _NO_NAME.sub("-", name.lower()).strip("-")[:63].rstrip("-") or DEFAULT_NAMESPACE


class Place(NamedTuple):
    """Organization or group that entities are made of, its host, and their namespace."""

    host: str
    login: str
    namespace: str

    @property
    def origin(self) -> str:
        """Origin of the problems of an organization as a whole."""
        return f"{self.host}/{self.login}"

    def origin_of(self, slug: str) -> str:
        """Origin of everything in a repository."""
        return f"{self.host}/{slug}"

    def id_of(self, kind: str, number: int) -> str:
        """The id of a thing that outlives its name."""
        return f"{self.host}/{kind}/{number}"

    def ref(self, kind: str, name: str) -> str:
        """The reference of an entity of this place."""
        return f"{kind}:{self.namespace}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedRepository:
    """Repository of a listing.

    `slug` is its path at the host, `name` that of a component made of it. `version` is another one
    after each change of its files, None if there are none. `tree` is the address of its root
    folder, with a slash at its end. `annotations` are those that name it. One that `is_deleted` is
    gone for its people, though its host keeps it for a while.
    """

    number: int
    slug: str
    name: str
    url: str
    tree: str
    branch: str
    version: str | None
    annotations: Mapping[str, str]
    description: str | None = None
    topics: Sequence[str] = ()
    language: str = ""
    is_archived: bool = False
    is_fork: bool = False
    is_deleted: bool = False


@dataclass(slots=True)
class RootContent:
    """Files of a repository that its import begins with.

    `catalog` is the path of its catalog file with the content, `codeowners` the text of the file
    that names owners. `missing` are reasons for which one that may exist was not read.
    """

    catalog: tuple[str, Content] | None = None
    codeowners: str | None = None
    missing: list[Missing] = field(default_factory=list)


class Ownership(NamedTuple):
    """Owner of a repository, if there is one; not `certain` while something was not read."""

    ref: str | None
    certain: bool = True


OwnerOf = Callable[[HostedRepository, RootContent], Ownership]
