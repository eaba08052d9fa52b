"""Trust for people: which sets are believed when a membership gives a right.

Anybody who can push one set, or commit to one imported repository, can write that somebody is a
member of a group. Such a membership shows in the catalog and gives no right.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from factbook.settings import Settings

# Begins the names of sets that importers write. No pushed set has a slash in its name.
IMPORTED: Final = "import/"
# Ends the name of the annotation with the origin of an imported entity, such as its repository.
ORIGIN_MARK: Final = "import-origin"
# Stands for entities outside any set.
OUTSIDE: Final = "/"

_DIRECTORIES: Final = frozenset({"ldif", "scim"})
_CODE_HOSTS: Final = frozenset({"gitea", "github", "gitlab"})
# The part of a code host with the users and groups of files that `people_from` names.
PEOPLE_FILES: Final = "people"
# What a code host says of people itself, as opposed to files in its repositories.
_ACCOUNTS: Final = frozenset({"groups", "members", "teams"})
# A part takes users and groups from parts below it.
_FILES, _PEOPLE_FILES, _HOST, _DIRECTORY = 1, 2, 3, 4
_NO_SOURCE: Final = 0


class PeopleTrust(NamedTuple):
    """The sets that a setting trusts, by name or by the beginning of names before a `*`."""

    sets: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The sets named in the settings."""
        return cls(tuple(settings.people_sets or ()))

    def names(self, set_name: str | None) -> bool:
        """True if the setting names the set; None means entities outside any set."""
        return matches(self.sets, set_name)

    def counts(self, stated_in: str | None, group_in: str | None) -> bool:
        """True if a membership that one set states gives the rights of a group in another set.

        A code host is believed about its own teams. Whoever may create a team there could
        otherwise give it the name of a group that comes from elsewhere, even from a file there.
        """
        if self.names(stated_in):
            return True
        source = _source(stated_in)
        if source == _HOST:
            return _source(group_in) == _HOST and _importer(stated_in) == _importer(group_in)
        return source == _DIRECTORY


def matches(patterns: Iterable[str], set_name: str | None) -> bool:
    """True if a pattern names the set. Only patterns that begin with `import/` match imports."""
    if set_name is None:
        return OUTSIDE in patterns
    is_imported = set_name.startswith(IMPORTED)
    return any(
        set_name.startswith(pattern[:-1]) if pattern.endswith("*") else set_name == pattern
        for pattern in patterns
        if pattern.startswith(IMPORTED) == is_imported
    )


def is_from_files(set_name: str | None) -> bool:
    """True for a set with entities of files in repositories."""
    return _source(set_name) in (_FILES, _PEOPLE_FILES)


def outranks(set_name: str | None, other: str | None, ref: str) -> bool:
    """True if a set takes this user or group from another one.

    What a directory or a code host says of people replaces what a file in a repository says.
    """
    if not ref.startswith(("user:", "group:")):
        return False
    source, below = _source(set_name), _source(other)
    return below in (_FILES, _PEOPLE_FILES) and source > below


def precedence(set_name: str) -> int:
    """The place of a set among those that state people; the highest one counts."""
    return _source(set_name)


def _source(set_name: str | None) -> int:
    if set_name is None or not set_name.startswith(IMPORTED):
        return _NO_SOURCE
    kind, word = _importer(set_name).partition("-")[0], set_name.rpartition(".")[2]
    if kind in _DIRECTORIES:
        return _DIRECTORY
    if kind not in _CODE_HOSTS:
        return _NO_SOURCE
    if word in _ACCOUNTS:
        return _HOST
    return _PEOPLE_FILES if word == PEOPLE_FILES else _FILES


def _importer(set_name: str | None) -> str:
    """The id of the importer that writes a set, empty if none does."""
    if set_name is None or not set_name.startswith(IMPORTED):
        return ""
    return set_name.removeprefix(IMPORTED).partition("/")[0]
