"""Repositories as any code host lists them, and the place that they are imported from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.outbound.outcomes import Missing

Content = bytes | Missing


class Place(NamedTuple):
    """Organization or group that entities are made of, its host, and their namespaces.

    `groups` are the names of its groups by what the host calls them, in lower case.
    """

    host: str
    login: str
    namespace: str = DEFAULT_NAMESPACE
    people: str = DEFAULT_NAMESPACE
    groups: Mapping[str, str] = MappingProxyType({})

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

    def name_of(self, kind: str, name: str) -> str:
        """The name of an entity that is made of what the host calls so."""
        return self.groups.get(name.lower(), name) if kind == "group" else name

    def group_of(self, name: str) -> str | None:
        """The name of the group that files of this place call so; None if it has none."""
        below, wanted = f"{self.login.lower()}/", name.lower()
        for key, group in self.groups.items():
            if key.removeprefix(below).replace("/", "-") == wanted:
                return group
        return next((group for group in self.groups.values() if group.lower() == wanted), None)

    def namespace_of(self, kind: str) -> str:
        """The namespace of the entities of a kind."""
        return self.people if kind == "user" else self.namespace

    def ref(self, kind: str, name: str) -> str:
        """The reference of an entity that is made of what the host calls so."""
        return f"{kind}:{self.namespace_of(kind)}/{self.name_of(kind, name)}"


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
