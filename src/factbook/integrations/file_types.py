"""Facts from the paths of a repository's files: their types, and the presence of a catalog file.

Names are compared without regard to case. A file may have several types.
"""

from collections.abc import Iterable
from typing import Any, Final

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


def facts(paths: Iterable[str]) -> dict[str, Any]:
    """Members of the repository shape that follow from the paths of all files.

    `filePaths` is sorted by code point; `inCatalog` is true if any folder has a catalog-info file.
    """
    known = sorted(paths)
    counts = dict.fromkeys(_TYPES, 0)
    in_catalog = False
    for path in known:
        for type_ in types(path):
            counts[type_] += 1
        in_catalog = in_catalog or path.rpartition("/")[2].lower() in _CATALOG
    return {
        "filePaths": known,
        "totalFiles": len(known),
        "inCatalog": in_catalog,
        **{f"fileTypes.{type_}": count for type_, count in counts.items()},
    }


def types(path: str) -> set[str]:
    """The types that a file counts towards, by its path."""
    lower = path.lower()
    name = lower.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    found = {_TYPES_BY_SUFFIX[suffix]} if dot and suffix in _TYPES_BY_SUFFIX else set()
    if _is_docker(name, stem, suffix):
        found.add("docker")
    if lower.startswith("docs/"):
        found.add("docs")
    if _is_config(name, dot + suffix):
        found.add("config")
    return found


def _is_docker(name: str, stem: str, suffix: str) -> bool:
    """True for Dockerfile*, Containerfile, .dockerignore, compose*.yaml, docker-compose*.yaml."""
    if name.startswith("dockerfile") or name in {"containerfile", ".dockerignore"}:
        return True
    return suffix in {"yml", "yaml"} and stem.startswith(("compose", "docker-compose"))


def _is_config(name: str, suffix: str) -> bool:
    """True for environment files, .editorconfig and dot files that end with rc."""
    return (
        name.startswith(".env")
        or suffix.startswith(".env")
        or suffix == ".editorconfig"
        or (name.startswith(".") and name.endswith("rc"))
    )
