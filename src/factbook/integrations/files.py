"""Paths of all files of a repository at one commit, kept until its HEAD moves, and facts from them.

A tree that takes too many calls is read from a clone without file contents. Names are compared
without regard to case. A file may have several types.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from factbook.integrations.integration import get_stored_entry, store_entry
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.git import Clones, report_too_large
from factbook.outbound.outcomes import Missing, Outcome

Paths = list[str]


class _StoredPaths(msgspec.Struct, array_like=True):
    oid: str
    paths: Paths


async def recall_paths(memory: Memory, repository: str | int, oid: str) -> Paths | None:
    """The paths at this commit, or None if none are kept or those of another commit.

    `repository` is the host's permanent name for it, such as its id.
    """
    stored = await get_stored_entry(memory, _make_tree_key(repository), _StoredPaths)
    return stored.paths if stored and stored.oid == oid else None


async def keep_paths(memory: Memory, repository: str | int, oid: str, paths: Paths) -> None:
    """Keep the paths at this commit in place of those at another one."""
    await store_entry(memory, _make_tree_key(repository), _StoredPaths(oid, paths))


class RepositoryTree(NamedTuple):
    """Tree at the commit `oid`; `repository` is its permanent name, `name` its path for a clone.

    `call` reads it by API calls, or returns the reason if that takes more than `most_calls`.
    """

    repository: str | int
    oid: str
    name: str
    call: Callable[[], Awaitable[Paths | Missing]]
    most_calls: int


async def read_file_tree(
    memory: Memory, tree: RepositoryTree, copies: Clones, now: int
) -> Paths | Missing:
    """The paths of all files, unordered: those kept of this commit, or read and kept."""
    found = await recall_paths(memory, tree.repository, tree.oid)
    if found is not None:
        return found
    read = await _read_as_before(memory, tree, copies, now)
    if not isinstance(read, Missing):
        await keep_paths(memory, tree.repository, tree.oid, read)
    return read


async def _read_as_before(
    memory: Memory, tree: RepositoryTree, copies: Clones, now: int
) -> Paths | Missing:
    """The paths, by the method that worked for an earlier commit if that is known."""
    by_calls, by_clone = f"tree:{tree.repository}", f"clone:{tree.repository}"
    if not await exceeds_noted_limit(memory, by_calls, tree.most_calls, now):
        found = await tree.call()
        if not isinstance(found, Missing) or found.outcome is not Outcome.TOO_LARGE:
            return found
        await note_exceeded_limit(memory, by_calls, tree.most_calls, now)
    if await exceeds_noted_limit(memory, by_clone, copies.limits, now):
        return report_too_large(copies.limits)
    found = await copies.paths(tree.name)
    if not isinstance(found, Missing) or found.retried:
        return found
    if found.outcome is Outcome.TOO_LARGE:
        await note_exceeded_limit(memory, by_clone, copies.limits, now)
        return found
    detail = f"the tree takes too many calls, and a clone failed: {found.detail}"
    return Missing(Outcome.TOO_LARGE, detail)


def _make_tree_key(repository: str | int) -> str:
    return f"tree:{repository}"


_TYPES_BY_SUFFIX: Final[dict[str, str]] = {
    **dict.fromkeys(("yml", "yaml"), "yaml"),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx"), "javascript"),
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("md", "mdx", "rst", "adoc", "txt"), "docs"),
    **dict.fromkeys(("json", "toml", "ini", "cfg", "conf", "properties"), "config"),
    "dockerfile": "docker",
}
_TYPES: Final = ("docker", "yaml", "javascript", "python", "docs", "config")
_CATALOG: Final = frozenset({"catalog-info.yaml", "catalog-info.yml"})


def make_file_facts(paths: Iterable[str]) -> dict[str, Any]:
    """Members of the repository shape that follow from the paths of all files.

    `filePaths` is sorted by code point; `inCatalog` is true if any folder has a catalog-info file.
    """
    known = sorted(paths)
    counts = dict.fromkeys(_TYPES, 0)
    in_catalog = False
    for path in known:
        for type_ in list_file_types(path):
            counts[type_] += 1
        in_catalog = in_catalog or path.rpartition("/")[2].lower() in _CATALOG
    return {
        "filePaths": known,
        "totalFiles": len(known),
        "inCatalog": in_catalog,
        **{f"fileTypes.{type_}": count for type_, count in counts.items()},
    }


def list_file_types(path: str) -> set[str]:
    """The types that a file counts towards, by its path."""
    lower = path.lower()
    name = lower.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    found = {_TYPES_BY_SUFFIX[suffix]} if dot and suffix in _TYPES_BY_SUFFIX else set()
    if _is_docker_file(name, stem, suffix):
        found.add("docker")
    if lower.startswith("docs/"):
        found.add("docs")
    if _is_config_file(name, dot + suffix):
        found.add("config")
    return found


def _is_docker_file(name: str, stem: str, suffix: str) -> bool:
    """True for Dockerfile*, Containerfile, .dockerignore, compose*.yaml, docker-compose*.yaml."""
    if name.startswith("dockerfile") or name in {"containerfile", ".dockerignore"}:
        return True
    return suffix in {"yml", "yaml"} and stem.startswith(("compose", "docker-compose"))


def _is_config_file(name: str, suffix: str) -> bool:
    """True for environment files, .editorconfig and dot files that end with rc."""
    return (
        name.startswith(".env")
        or suffix.startswith(".env")
        or suffix == ".editorconfig"
        or (name.startswith(".") and name.endswith("rc"))
    )
