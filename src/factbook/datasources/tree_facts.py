"""Facts of code hosts that follow from the paths of the files in a working tree.

File contents aren't read: a CODEOWNERS file may have mistakes.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from factbook.integrations import code_host, gitea
from factbook.integrations.github import facts as github
from factbook.integrations.gitlab import facts as gitlab

# By the source of a code host.
_CODEOWNERS: Final[Mapping[str, frozenset[str]]] = {
    "gitea": gitea.CODEOWNERS,
    "github": github.CODEOWNERS,
    "gitlab": gitlab.CODEOWNERS,
}
_REVIEW: Final = "codehost.codeReview"


def list_tree_facts(host: str, paths: Collection[str]) -> dict[str, Any]:
    """The facts of a code host's source, by name."""
    found = {
        f"repository.{name}": value for name, value in code_host.make_file_facts(paths).items()
    }
    if places := _CODEOWNERS.get(host):
        if uses := not places.isdisjoint(paths):
            return {**found, f"{_REVIEW}.usesCodeowners": uses}
        errors = {"codeownersHasErrors": False, "codeownersErrorCount": 0}
        none = {"usesCodeowners": uses, **errors}
        found |= {f"{_REVIEW}.{name}": value for name, value in none.items()}
    return found
