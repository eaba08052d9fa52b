"""Owners of projects: by CODEOWNERS, by the group that one is in, by one that it is shared with."""

from collections.abc import Mapping
from typing import Final

from factbook.importers.code_host.entities import EVERYTHING, owners_of_everything
from factbook.importers.code_host.repository import HostedRepository, Ownership, RootContent
from factbook.importers.gitlab.answers import MAINTAINER, ListedProject
from factbook.importers.gitlab.entities import GroupPlace
from factbook.importers.gitlab.people import GroupMembers, GroupTree
from factbook.importers.persons import is_person

# What ends with a slash is all that is below, and `**` behind one is part of a name.
_PATTERNS: Final = EVERYTHING - {"/**"} | {"/", "/**/", "**/"}


class ProjectOwners:
    """Owners of the projects of a group; without `members`, no people are read."""

    def __init__(
        self,
        at: GroupPlace,
        projects: Mapping[int, ListedProject],
        tree: GroupTree,
        members: GroupMembers | None,
        now: int,
    ) -> None:
        self._now = now
        self._at = at
        self._projects = projects
        self._members = members
        self._groups = tree.groups
        self._by_id = {one.id: one for one in tree.groups.values()}
        self._root = tree.root
        people = members.members.values() if members else ()
        self._users = {one.username.lower() for one in people if is_person(one)}
        self._is_known = not (tree.missing or (members and members.missing))

    def of(self, one: HostedRepository, root: RootContent) -> Ownership:
        """The owner of a project.

        It is the first owner of the last line for `*` in CODEOWNERS that is a group or member, else
        the subgroup that the project is in, else the only group that may maintain it. While some
        people are not known, an owner may be missing that was known before.
        """
        ref = self._codeowner(root.codeowners) if root.codeowners is not None else None
        if ref is None and self._members is not None:
            ref = self._group(self._projects[one.number])
        return Ownership(ref, certain=self._is_known)

    def _codeowner(self, text: str) -> str | None:
        for owner in owners_of_everything(text, patterns=_PATTERNS, sections=True):
            name = owner.removeprefix("@").lower()
            if not owner.startswith("@"):
                continue
            if found := self._groups.get(name):
                return self._at.group_ref(found.full_path)
            if name in self._users:
                return self._at.place.ref("user", owner[1:])
        return None

    def _group(self, project: ListedProject) -> str | None:
        is_in = self._by_id.get(project.namespace.id)
        if is_in is not None and is_in is not self._root:
            return self._at.group_ref(is_in.full_path)
        shared = [
            one.group_id for one in project.shared_with_groups if one.gives(MAINTAINER, self._now)
        ]
        found = self._by_id.get(shared[0]) if len(shared) == 1 else None
        return self._at.group_ref(found.full_path) if found else None
