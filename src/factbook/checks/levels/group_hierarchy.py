"""The groups of the catalog as a tree by `childOf`, which may in truth hold cycles and diamonds."""

from collections.abc import Iterable, Mapping


class GroupHierarchy:
    """Groups with their parents; a group that is nobody's child is a root."""

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        self.parents = {group: frozenset(found) - {group} for group, found in parents.items()}
        self.children: dict[str, set[str]] = {}
        for group, found in self.parents.items():
            for parent in found:
                self.children.setdefault(parent, set()).add(group)

    def within(self, group: str) -> set[str]:
        """The group and all groups below it, each once."""
        return _reached(group, self.children)

    def above(self, group: str) -> set[str]:
        """The group and all groups above it, each once."""
        return _reached(group, self.parents)

    def tops(self, groups: Iterable[str]) -> list[str]:
        """The groups from which all of the given ones can be reached: those without parents.

        Of a cycle without an entrance it is the first by name.
        """
        remaining = {one for group in groups for one in self.above(group)}
        found = sorted(group for group in remaining if not self.parents.get(group))
        for group in found:
            remaining -= self.within(group)
        while remaining:
            found.append(min(remaining))
            remaining -= self.within(found[-1])
        return sorted(found)

    def path(self, group: str) -> list[str]:
        """A chain of parents down to the group, from a root or from where a cycle closes."""
        found = [group]
        while further := sorted(self.parents.get(found[0], frozenset()) - set(found)):
            found.insert(0, further[0])
        return found


def _reached(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        for other in edges.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
